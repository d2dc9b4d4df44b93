"""Each compiled entry point closes over the stamp of the sources."""

from pathlib import Path


def test_a_changed_source_is_compiled_again(tmp_path: Path) -> None:
    """numba keys its cache by what an entry point closes over: the stamp of all the sources."""
    from gristmill.chess.kernels import generate, replay, rowtext, scan, splicetext
    from gristmill.chess.kernels.stamp import KERNEL_STAMP

    for entry in (
        scan.scan_games,
        replay.replay,
        rowtext.find_rows,
        rowtext.write_games,
        splicetext.write_splices,
        generate.play,
    ):
        cells = [cell.cell_contents for cell in entry.py_func.__closure__]
        assert KERNEL_STAMP in cells
