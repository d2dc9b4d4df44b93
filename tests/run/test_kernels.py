"""Machine code of kernels: where it is kept, by what it is keyed, and who may fill it."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from bench.servers import copy_checkout, plain_environment
from gristmill.macroxue.samples import write_drop
from gristmill.run import kernels
from gristmill.run.kernels import CACHE_DIR
from tests.paths import CHECKOUT, ran
from tests.read_only import read_only
from tests.run.ship_kernels import pack

MODULE = """
from gristmill.run.kernels import kernel
from numba import njit

FACTOR = 3

@njit
def helper(number):
    return number * FACTOR

@kernel(nogil=True)
def inner(number):
    return helper(number) + 1

@kernel()
def outer(number):
    return inner(number) + 1

@kernel("int64(int64)")
def fixed(number):
    return number + FACTOR
"""
CALL = "import family.kernels.code as c; print(c.outer({value}), c.outer.stats.cache_hits)"


def put_code(folder: Path) -> Path:
    """A package of kernels below a folder, and a home that can be written."""
    (folder / "code/family/kernels").mkdir(parents=True)
    (folder / "code/family/kernels/code.py").write_text(MODULE)
    (folder / "home").mkdir()
    return folder


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return put_code(tmp_path)


@pytest.fixture(scope="module")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = put_code(tmp_path_factory.mktemp("filled"))
    assert python(made, CALL.format(value=5)) == "17 Counter()"
    return made


@pytest.fixture
def compiled(code: Path, _filled: Path) -> Path:
    """`code`, with its machine code in the home: that of a copy at another path."""
    assert machine_code(_filled / "code") == []
    shutil.copytree(_filled / "home", code / "home", dirs_exist_ok=True)
    return code


def environment(code: Path, **variables: str | Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in (kernels.CACHE_DIR, "XDG_CACHE_HOME", "HOME")
    }
    paths = os.pathsep.join([str(code / "code"), str(CHECKOUT)])
    # Python takes a .pyc of the same second and size for current; a test writes sources faster.
    fixed = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    chosen = {"HOME": code / "home", **fixed, **variables}
    return {**kept, **{name: str(value) for name, value in chosen.items()}}


def python(code: Path, text: str, **variables: str | Path) -> str:
    done = ran(
        [sys.executable, "-c", textwrap.dedent(text)], cwd=code, env=environment(code, **variables)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def machine_code(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def home_cache(code: Path) -> Path:
    return code / "home/.cache/gristmill/kernels"


def test_machine_code_is_kept_in_the_users_cache_and_used_again(compiled):
    assert len(machine_code(home_cache(compiled))) == 3
    assert "1" in python(compiled, CALL.format(value=5)).split("Counter")[1]


@pytest.mark.slow
def test_kernels_load_no_plug_ins_of_numba_and_code_of_others_does(code):
    text = (
        "import numba, numba.core.entrypoints as plug_ins\n"
        f"{CALL.format(value=5)}\n"
        "print(plug_ins._already_initialized)\n"
        "numba.njit(lambda number: number)(1)\n"
        "print(plug_ins._already_initialized)"
    )
    assert python(code, text).split()[-2:] == ["False", "True"]


@pytest.mark.slow
@pytest.mark.parametrize("variable", [kernels.CACHE_DIR, "XDG_CACHE_HOME"])
def test_a_folder_that_the_caller_names_comes_first(code, variable):
    python(code, CALL.format(value=5), **{variable: code / "named"})
    assert len(machine_code(code / "named")) == 3
    assert not home_cache(code).exists()


@pytest.mark.slow
def test_the_data_root_follows_where_the_user_has_no_cache(code):
    (code / "data").mkdir()
    text = (
        "import subprocess, sys, pathlib; from gristmill.run import kernels\n"
        "kernels.fall_back_to(pathlib.Path('data').absolute())\n"
        f"subprocess.run([sys.executable, '-c', {CALL.format(value=5)!r}], check=True)"
    )
    assert python(code, text, HOME="/nonexistent").startswith("17")
    folder = code / f"data/cache/kernels-{os.geteuid()}"
    assert len(machine_code(folder)) == 3
    assert folder.stat().st_mode & 0o777 == 0o700
    python(code, text)
    assert len(machine_code(home_cache(code))) == 3


@pytest.mark.slow
def test_without_any_folder_kernels_are_compiled_in_memory(code):
    text = (
        "import pathlib; from gristmill.run import kernels\n"
        "kernels.fall_back_to(pathlib.Path('/nonexistent'))\n"
    )
    assert python(code, text + CALL.format(value=5), HOME="/nonexistent") == "17 Counter()"
    assert machine_code(code) == []
    assert not Path("/nonexistent").exists()


def test_a_folder_that_others_can_write_is_not_trusted(code, monkeypatch):
    folder = code / "named"
    folder.mkdir()
    monkeypatch.setenv(kernels.CACHE_DIR, str(folder))
    for mode, expected in ((0o700, folder), (0o755, folder), (0o770, None), (0o702, None)):
        folder.chmod(mode)
        assert kernels.cache_folder() == expected
    folder.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert kernels.cache_folder() is None
    monkeypatch.undo()
    monkeypatch.setenv(kernels.CACHE_DIR, "relative")
    assert kernels.cache_folder() is None


def test_a_copy_of_the_code_at_another_path_uses_the_machine_code(compiled):
    """Another clone, and files that are newer."""
    code, kept = compiled, machine_code(home_cache(compiled))
    copy = code / "copy/family/kernels"
    copy.mkdir(parents=True)
    (copy / "code.py").write_text("# A comment.\n" + MODULE)
    paths = os.pathsep.join([str(code / "copy"), str(CHECKOUT)])
    answer, hits = python(code, CALL.format(value=5), PYTHONPATH=paths).split(" ", 1)
    assert answer == "17" and hits.endswith(": 1})")
    assert machine_code(home_cache(code)) == kept


@pytest.mark.slow
def test_a_changed_source_is_compiled_again(code):
    """Of a function that the kernel calls, in a package of its own; it is changed and put back."""
    shared = code / "code/shared.py"
    shared.write_text(MODULE)
    (code / "code/family/kernels/code.py").write_text(
        "from gristmill.run.kernels import kernel\nimport shared\n"
        "@kernel()\ndef outer(number): return shared.inner(number) + 1\n"
    )
    assert python(code, CALL.format(value=5)) == "17 Counter()"
    shared.write_text(MODULE.replace("FACTOR = 3", "FACTOR = 4"))
    assert python(code, CALL.format(value=5)) == "22 Counter()"
    shared.write_text(MODULE)
    assert re.fullmatch(r"17 Counter\(.*: 1}\)", python(code, CALL.format(value=5)))


@pytest.mark.parametrize(
    "step", ["_save_data", pytest.param("_save_index", marks=pytest.mark.slow)]
)
def test_a_process_that_is_killed_while_it_keeps_machine_code_leaves_none(code, step):
    """Its lock is free, and the next process compiles the kernel and keeps it."""
    killed = (
        "import numba.core.caching as caching, os\n"
        f"caching.IndexDataCacheFile.{step} = lambda *_: os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", killed + CALL.format(value=5)],
        cwd=code,
        env=environment(code),
        check=False,
    )
    assert done.returncode == -9
    assert machine_code(home_cache(code)) == []
    assert python(code, CALL.format(value=5)) == "17 Counter()"
    assert len(machine_code(home_cache(code))) == 3


@pytest.mark.parametrize("kind", ["*.nbc", pytest.param("*.nbi", marks=pytest.mark.slow)])
def test_machine_code_that_is_cut_short_is_compiled_again(compiled, kind):
    for file in home_cache(compiled).rglob(kind):
        file.write_bytes(file.read_bytes()[:20])
    assert python(compiled, CALL.format(value=5)).startswith("17")
    assert "1" in python(compiled, CALL.format(value=5)).split("Counter")[1]


@pytest.mark.slow
def test_a_full_disk_leaves_the_kernel_in_memory(code):
    text = (
        "import numba.core.caching as caching\n"
        "def full(*_): raise OSError(28, 'No space left on device')\n"
        "caching.IndexDataCacheFile._save_data = full\n"
    )
    assert python(code, text + CALL.format(value=5)).startswith("17")


@pytest.mark.slow
def test_processes_that_fill_the_cache_at_once_get_their_own_signatures(code):
    """Two signatures of one kernel: numba alone would give both the same file."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", f"import family.kernels.code as c; print(c.outer({value}))"],
            cwd=code,
            env=environment(code),
            stdout=subprocess.PIPE,
            text=True,
        )
        for value in ("5", "5.5", "5", "5.5")
    ]
    answers = [process.communicate(timeout=600)[0].strip() for process in started]
    assert answers == ["17", "18.5", "17", "18.5"]
    assert len(machine_code(home_cache(code))) == 5
    text = (
        "import family.kernels.code as c\n"
        "print(c.outer(5), c.outer(5.5), sum(c.outer.stats.cache_hits.values()))"
    )
    assert python(code, text) == "17 18.5 2"


def test_a_signature_that_is_given_is_the_only_one(code):
    text = (
        "import family.kernels.code as c\n"
        "print(c.fixed(2), len(c.fixed.signatures))\n"
        "try: c.fixed('text')\n"
        "except TypeError: print('refused')"
    )
    assert python(code, text).split() == ["5", "1", "refused"]


@pytest.mark.slow
def test_everything_is_built_where_neither_code_nor_home_can_be_written(tmp_path):
    """From a sample drop to values and a verified data root, with kernels in the data root."""
    checkout, data, home = tmp_path / "checkout", tmp_path / "data", tmp_path / "home"
    copy_checkout(checkout)
    # Its kernels are compiled.
    (checkout / "gristmill/run/kernels.zip").unlink()
    home.mkdir()
    write_drop(data / "drops/macroxue/one", seed=1, games=1, max_moves=40, depth=6)
    (tmp_path / "instance").mkdir()
    (tmp_path / "instance/dagster.yaml").write_text("telemetry: {enabled: false}\n")
    surroundings = {
        **plain_environment(),
        "HOME": str(home),
        "DAGSTER_HOME": str(tmp_path / "instance"),
        "GRISTMILL_DATA": str(data),
    }
    surroundings.pop(kernels.CACHE_DIR, None)
    surroundings.pop("XDG_CACHE_HOME", None)
    module = [sys.executable, "-m", "gristmill.cli"]
    pack = data / "macroxue/packs/one"
    reader = "from gristmill.macroxue import StepDataset"
    reads = f"{reader}; StepDataset({str(pack)!r}, verify='hash')[0]"
    for folders, words in (
        ([checkout, home], [*module, "materialize", "macroxue/pack", "macroxue/values"]),
        ([checkout, home, data], [*module, "verify", str(data)]),
        ([checkout, home, data], [*module, "ls", str(data)]),
        ([checkout, home, data], [*module, "trace", str(pack), "0"]),
        ([checkout, home, data], [sys.executable, "-c", reads]),
    ):
        command = read_only(folders, words)
        done = ran(command, cwd=checkout, env=surroundings)
        assert done.returncode == 0, done.stdout + done.stderr
    assert machine_code(data / "cache")
    assert not machine_code(checkout)


def test_one_process_at_a_time_compiles_a_kernel(tmp_path):
    """Nested calls, as of a kernel that calls itself, hold the lock that they have."""
    lock = tmp_path / "kernel.lock"
    with kernels._alone(lock):
        with kernels._alone(lock):
            pass
        with lock.open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


SHARED = """
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

FACTOR = 3
TABLE = np.arange(4, dtype=np.int32)
UNUSED = 1

@njit
def helper(number):
    return number * FACTOR + TABLE[number]

def plain(number):
    return number + 1

@intrinsic
def low(context, value):
    def generate(context, builder, signature, arguments):
        return builder.trunc(arguments[0], context.get_value_type(types.uint8))
    return types.uint8(types.int64), generate
"""
CODE = """
from numba import njit
import shared
from shared import helper, low

PAIR = (1, (2.0, "x"))

def closed(step):
    @njit(nogil=True)
    def outer(number, more=5):
        '''What it does.'''
        if number in {"a", "b"}:
            return 0
        return helper(number) + low(number) + shared.plain(number) + PAIR[0] + step
    return outer

outer = closed(7)
"""


def _module(name: str, text: str, file: Path) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, str(file), "exec"), module.__dict__)
    return module


@pytest.fixture(autouse=True)
def _no_modules_stay() -> Iterator[None]:
    yield
    for name in ("shared", "family"):
        sys.modules.pop(name, None)


def _key(shared: str = SHARED, code: str = CODE, folder: Path = Path("/one")) -> str:
    _module("shared", shared, folder / "shared.py")
    return kernels.kernel_key(_module("family", code, folder / "family.py").outer)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 3", "FACTOR = 4"),
        ("FACTOR = 3", "FACTOR = 3.0"),
        ("FACTOR = 3", "FACTOR = True"),
        ("arange(4", "arange(5"),
        ("arange(4", "arange(1, 5"),
        ("np.int32", "np.int64"),
        ("np.int32", "np.float32"),
        ("arange(4, dtype=np.int32)", "arange(8, dtype=np.int32)[::2]"),
        ("number * FACTOR", "number + FACTOR"),
        ("number + 1", "number + 2"),
        ("@njit\ndef helper", "@njit(fastmath=True)\ndef helper"),
        ("builder.trunc", "builder.zext"),
        ("types.uint8)", "types.int8)"),
        ("2.0", "2.5"),
        ('"x"', '"y"'),
        ("+ step", "- step"),
        ("closed(7)", "closed(8)"),
        ("more=5", "more=6"),
        ("nogil=True", "nogil=False"),
        ('{"a", "b"}', '{"a", "c"}'),
    ],
)
def test_a_change_of_a_kernel_or_of_what_it_calls_elsewhere_changes_its_key(old, new):
    assert SHARED.count(old) + CODE.count(old) == 1
    assert _key(SHARED.replace(old, new), CODE.replace(old, new)) != _key()


def test_equal_code_of_a_module_has_one_key_wherever_it_is_and_so_have_circles():
    elsewhere = "# A comment.\n\n" + SHARED.replace("UNUSED = 1", "UNUSED = 2\nOTHER = object()")
    assert _key(elsewhere, "\n\n" + CODE, Path("/two")) == _key()
    assert _key(SHARED, CODE.replace("What it does.", "Its docstring.")) == _key()
    # numba names machine code by module and function: two of one name would be mixed up.
    _module("shared", SHARED, Path("/one/shared.py"))
    one, two = (_module(name, CODE, Path("/one/x.py")).outer for name in ("family", "other"))
    del sys.modules["other"]
    assert kernels.kernel_key(one) != kernels.kernel_key(two)
    both = "\n@njit\ndef helper(n): return other(n)\n@njit\ndef other(n): return helper(n) + {}\n"
    assert _key(SHARED + both.format(1)) != _key(SHARED + both.format(2))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("FACTOR = 3", "FACTOR = object()", "<object object"),
        ("FACTOR = 3", "FACTOR = {'a': 1}", "{'a': 1}"),
        ("def generate", "import json\n    def generate", "low imports within the function"),
    ],
)
def test_a_kernel_with_values_that_nobody_can_compare_has_no_key(old, new, named):
    with pytest.raises(kernels.NoKey, match=named):
        _key(SHARED.replace(old, new))


def test_another_version_processor_or_setting_changes_the_key(monkeypatch):
    import numba

    class Features(str):
        def flatten(self) -> str:
            return self

    around, before, key = kernels._surroundings.__wrapped__, kernels._surroundings(), _key()
    changes: dict[str, object] = dict.fromkeys(
        ("numba.__version__", "llvmlite.__version__", "numpy.__version__", "sys.abiflags"), "0.0"
    )
    changes["llvmlite.binding.get_host_cpu_name"] = lambda: "other"
    changes["llvmlite.binding.get_host_cpu_features"] = lambda: Features("other")
    for name, value in changes.items():
        with monkeypatch.context() as patched:
            patched.setattr(name, value)
            assert around() != before, name
    with monkeypatch.context() as patched:
        patched.setenv("NUMBA_BOUNDSCHECK", "1")
        assert around() != before
    with monkeypatch.context() as patched:  # the one that numba is given counts
        patched.setattr(numba.config, "CPU_NAME", "x86-64-v3")
        patched.setattr(numba.config, "CPU_FEATURES", "")
        assert around() == around(("x86-64-v3", "")) != before
    monkeypatch.setattr(kernels, "_surroundings", lambda _: (b"another",))
    assert _key() != key


def test_every_kernel_of_the_checkout_has_a_key_of_its_own():
    """Else it would be compiled in each process."""
    found = {}
    for file in sorted((CHECKOUT / "gristmill").rglob("*.py")):
        if "import kernel\n" in file.read_text():
            parts = file.relative_to(CHECKOUT).with_suffix("").parts
            for value in vars(import_module(".".join(parts))).values():
                if hasattr(value, "py_func"):
                    name = f"{value.__module__}.{value.__qualname__}"
                    found[name] = kernels.kernel_key(value)
    assert len(found) > 100
    assert len(set(found.values())) == len(found)
    assert "gristmill.chess.kernels.scan.scan_games" in found


_NAME, _FEATURES = kernels.PROCESSOR
_WITH = """
from pathlib import Path
from gristmill.run import kernels
kernels.ARCHIVE = Path({archive!r})
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of `code`, compiled for the processor of an archive."""
    if not kernels._runs_here():
        pytest.skip("the archive is for x86-64-v3 on Linux")
    code = put_code(tmp_path_factory.mktemp("shipped"))
    folder = code / "compiled"
    folder.mkdir(mode=0o700)
    variables = {CACHE_DIR: folder, "NUMBA_CPU_NAME": _NAME, "NUMBA_CPU_FEATURES": _FEATURES}
    assert python(code, CALL.format(value=5), **variables) == "17 Counter()"
    return folder


@pytest.fixture
def archive(code: Path, shipped: Path) -> Path:
    assert pack(shipped, code / "kernels.zip") == 3
    return code / "kernels.zip"


def _call(code: Path, archive: Path, **variables: str | Path) -> str:
    return python(code, _WITH.format(archive=str(archive)) + CALL.format(value=5), **variables)


def test_a_shipped_kernel_is_not_compiled(code, archive):
    assert _call(code, archive) == "17 Counter({(int64,): 1})"
    assert machine_code(home_cache(code)) == []


def test_the_archive_is_the_same_for_the_same_kernels(code, shipped, archive):
    assert pack(shipped, code / "again.zip") == 3
    assert (code / "again.zip").read_bytes() == archive.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "result"),
    [("FACTOR = 3", "FACTOR = 4", 22), ("inner(number) + 1", "inner(number) + 2", 18)],
)
def test_another_kernel_is_compiled(code, archive, old, new, result):
    (code / "code/family/kernels/code.py").write_text(MODULE.replace(old, new))
    assert _call(code, archive) == f"{result} Counter()"
    assert machine_code(home_cache(code)) != []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "value", "processor", "answer"),
    [
        *(("", 5.0, {}, "17.0"), ("", 5, {"NUMBA_CPU_NAME": "generic"}, "17")),
        ('kernels._FEATURES = ("no-such-feature",)\n', 5, {}, "17"),
    ],
    ids=["signature", "processor", "instruction"],
)
def test_another_signature_or_machine_gets_none(code, archive, before, value, processor, answer):
    text = _WITH.format(archive=str(archive)) + before + CALL.format(value=value)
    assert python(code, text, **processor) == f"{answer} Counter()"


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2]])
def test_a_damaged_archive_is_no_reason_to_stop(code, archive, damage):
    archive.write_bytes(damage(archive.read_bytes()))  # type: ignore[operator]
    assert _call(code, archive) == "17 Counter()"


@pytest.mark.slow
def test_an_entry_with_a_wrong_byte_is_compiled(code, archive):
    octets = bytearray(archive.read_bytes())
    middle = len(octets) // 2
    octets[middle : middle + 64] = bytes(64)
    archive.write_bytes(octets)
    assert _call(code, archive).startswith("17 ")


def test_the_archive_of_the_package_holds_kernels():
    with zipfile.ZipFile(kernels.ARCHIVE) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) > 30
