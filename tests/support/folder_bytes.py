"""Every file below a folder, to see whether a command changed one."""

from __future__ import annotations

from pathlib import Path


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
