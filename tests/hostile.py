"""Text that a drop may hold and that must stay text wherever it is shown."""

HOST = "evil.example"
"""In every text; no element of a page may lead there."""
TEXTS = (
    f"[click](http://{HOST}/link)",
    f"![picture](https://{HOST}/picture.png)",
    f"<img src=https://{HOST}/img onerror=alert(1)>",
    f"<script src=https://{HOST}/script></script><script>alert(2)</script>",
    f"<a href='https://{HOST}/a'>a</a><iframe src=https://{HOST}/frame></iframe>",
    f"www.{HOST}/www HTTPS://{HOST}/bare someone@{HOST} mailto:someone@{HOST}",
    f"<https://{HOST}/auto> <someone@{HOST}>",
    f"a | b | https://{HOST}/cell\n| [c](https://{HOST}/row) |",
    f"` ``` \n\n[x][y]\n\n[y]: https://{HOST}/reference\n",
    f"# heading {HOST}\n===\n---\n* item\n1. item\n> quote\n[^1]: note",
    f"javascript:alert(3)//{HOST} [j](javascript:alert(4)) &#91;k](https://{HOST}/entity)",
    f"\u202e{HOST}\u2066\u200b\x1b[31m\x00\x85 @team $x$ ~~gone~~ {HOST}",
    f"{HOST} " + "long " * 100_000,
)
