"""The table `[alerts]`: one address, in the file or in a variable, that no error shows."""

import pytest

from gristmill.settings.root_tables import AlertSettings, InboxSettings, MirrorSettings

HOOK = "https://hooks.example/secret"


def test_the_address_is_in_the_file_or_in_the_variable_that_the_file_names():
    assert AlertSettings(webhook=HOOK).address({}) == HOOK
    assert AlertSettings(webhook_env="HOOK").address({"HOOK": f" {HOOK}\n"}) == HOOK


@pytest.mark.parametrize("given", [{}, {"webhook": HOOK, "webhook_env": "HOOK"}])
def test_neither_and_both_are_refused(given):
    with pytest.raises(ValueError, match=r"^needs either webhook or webhook_env$"):
        AlertSettings(**given).address({"HOOK": HOOK})


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "is not set"),
        ({"HOOK": " "}, "is not set"),
        ({"HOOK": "ftp://secret"}, "must be an address as https://HOST/PATH"),
        ({"HOOK": "https://a b/secret"}, "in printable ASCII and without spaces"),
        ({"HOOK": "https://me:secret@host/"}, "without a user and a password"),
        ({"HOOK": "https://host:secret/"}, "must be an address"),
    ],
)
def test_a_variable_without_an_address_is_named_and_its_value_is_not_shown(environment, why):
    with pytest.raises(ValueError, match=f"the variable HOOK .*{why}") as caught:
        AlertSettings(webhook_env="HOOK").address(environment)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("roots", [("",), ("/mnt/runs", " ")])
def test_an_empty_root_is_refused(roots):
    with pytest.raises(ValueError, match="roots has an empty text"):
        InboxSettings(follow_links=True, roots=roots)
    assert InboxSettings(follow_links=True, roots=(".",)).roots == (".",)


@pytest.mark.parametrize(
    ("push", "assets", "pushed"),
    [
        ("s3://barn/grain", (), {"macroxue/pack": True, "synth/harmony": True}),
        ("s3://barn/grain", ("macroxue/pack",), {"macroxue/pack": True, "synth/harmony": False}),
        ("", (), {"macroxue/pack": False}),
        ("", ("macroxue/pack",), {"macroxue/pack": False}),
    ],
)
def test_a_build_is_pushed_where_a_mirror_is_named_and_all_or_its_asset_are(push, assets, pushed):
    settings = MirrorSettings(push=push, assets=assets)
    assert {asset: settings.takes(asset) for asset in pushed} == pushed
