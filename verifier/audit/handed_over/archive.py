"""Archives with one possible form: a zip file of stored members, in ascending order, without times, owners or comments.

Nothing is compressed, so the same files give the same bytes on every machine, and nothing can unpack to more than its
size. The reader accepts what the writer writes and nothing else: every byte that is not a member's own is determined.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.models.errors import unreadable

from ...runs.run_folder import blocks, write_atomically

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
END_64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR_64 = struct.Struct("<4sIQI")
NEWEST_NEEDED = 20
"""The version of the zip format that readers need, 2.0."""
MADE_ON_UNIX = 3 << 8 | NEWEST_NEEDED
FIRST_DAY = 1 << 5 | 1
"""1 January 1980, the first day that zip knows."""
PLAIN_FILE = 0o100644 << 16
MOST_BYTES = (1 << 32) - 1
"""Of an archive: what 32-bit offsets reach."""
MANY_MEMBERS = (1 << 16) - 1
"""From so many on their number stands in a zip64 record, as readers have known it since 2001; offsets stay 32-bit."""
NEEDED_64 = 45
MOST_MEMBERS = 1 << 22
BLOCK = 1 << 20

Content = bytes | Path


class Malformed(ValueError):
    """Not an archive as the writer writes it."""


@dataclass(frozen=True)
class Member:
    name: str
    size: int
    checksum: int
    """CRC-32."""
    sha256: str

    def local(self) -> bytes:
        name = self.name.encode("ascii")
        size = (self.checksum, self.size, self.size)
        return LOCAL.pack(b"PK\3\4", NEWEST_NEEDED, 0, 0, 0, FIRST_DAY, *size, len(name), 0) + name

    def central(self, offset: int) -> bytes:
        name = self.name.encode("ascii")
        size = (self.checksum, self.size, self.size)
        fixed = (MADE_ON_UNIX, NEWEST_NEEDED, 0, 0, 0, FIRST_DAY, *size, len(name), 0, 0, 0, 0, PLAIN_FILE, offset)
        return CENTRAL.pack(b"PK\1\2", *fixed) + name


def directory(members: Iterable[Member]) -> bytes:
    """The central directory and the end of the archive."""
    offset, count, listed = 0, 0, bytearray()
    for member in members:
        listed += member.central(offset)
        offset += len(member.local()) + member.size
        count += 1
    if count < MANY_MEMBERS:
        return bytes(listed) + END.pack(b"PK\5\6", 0, 0, count, count, len(listed), offset, 0)
    made = MADE_ON_UNIX & 0xFF00 | NEEDED_64
    whole = END_64.pack(b"PK\6\6", END_64.size - 12, made, NEEDED_64, 0, 0, count, count, len(listed), offset)
    there = LOCATOR_64.pack(b"PK\6\7", 0, offset + len(listed), 1)
    return bytes(listed) + whole + there + END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(listed), offset, 0)


def parts_of(content: Content) -> Iterable[bytes]:
    return [content] if isinstance(content, bytes) else blocks(content)


def measured(name: str, content: Content) -> Member:
    checksum, size, digest = 0, 0, hashlib.sha256()
    for part in parts_of(content):
        checksum, size = zlib.crc32(part, checksum), size + len(part)
        digest.update(part)
    return Member(name, size, checksum, digest.hexdigest())


def write_archive(path: Path, contents: Mapping[str, Content], members: Iterable[Member]) -> None:
    """`members` are those of `contents`, as they were measured; a file that changed since then is refused."""
    members = sorted(members, key=lambda member: member.name)
    refuse_too_large(path, {member.name: member.size for member in members})

    def pieces() -> Iterator[bytes]:
        for member in members:
            yield member.local()
            digest = hashlib.sha256()
            for part in parts_of(contents[member.name]):
                digest.update(part)
                yield part
            if digest.hexdigest() != member.sha256:
                raise BadInput(f"{contents[member.name]!s}: changed while it was being read; run the command again")
        yield directory(members)

    write_atomically(path, pieces())


def refuse_too_large(path: Path, sizes: Mapping[str, int]) -> None:
    """Before anything is checked or written; `sizes` of the members, by their names."""
    total = sum(LOCAL.size + CENTRAL.size + 2 * len(name) + size for name, size in sizes.items())
    total += END.size + END_64.size + LOCATOR_64.size
    if total > MOST_BYTES or len(sizes) > MOST_MEMBERS:
        raise Unsupported(
            f"{path}: {len(sizes):,} files of {total:,} bytes together; an archive holds {MOST_MEMBERS:,} "
            f"files and {MOST_BYTES:,} bytes: hand over the run folder itself"
        )


def size_of(content: Content) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def read_archive(path: Path, allowed: Mapping[str, int], folder: Path) -> list[Member]:
    """Unpack into an empty folder. `allowed`: regular expressions of names, each with the most bytes of such a member.

    Names are compared before anything is written, so nothing lands outside the folder.
    """
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            end = file.tell()
            file.seek(0)
            if end > MOST_BYTES:
                raise Malformed(f"larger than {MOST_BYTES:,} bytes")
            return read_members(file, end, allowed, folder)
    except OSError as error:
        raise unreadable(path, error) from error


def read_members(file: BinaryIO, end: int, allowed: Mapping[str, int], folder: Path) -> list[Member]:
    members: list[Member] = []
    while (header := taken(file, LOCAL.size))[:4] == b"PK\3\4":
        fields = LOCAL.unpack(header)
        checksum, size, width = fields[6], fields[7], fields[9]
        name = taken(file, width).decode("latin-1")
        most = limit(name, allowed)
        if members and name <= members[-1].name:
            raise Malformed(f"{name} after {members[-1].name}: members must ascend, none twice")
        if size > min(most, end - file.tell()):
            raise Malformed(f"{name} is larger than it may be")
        if len(members) >= MOST_MEMBERS:
            raise Malformed("too many members")
        found = unpacked(file, size, folder / name, name)
        if found.checksum != checksum:
            raise Malformed(f"{name} is damaged: its CRC-32 is another")
        if header + name.encode("latin-1") != found.local():
            raise Malformed(f"the header of {name} is not as it must be")
        members.append(found)
    if not members:
        raise Malformed("not an archive that `swapproof bundle` makes")
    rest = header + file.read(len(members) * (CENTRAL.size + 256) + END_64.size + LOCATOR_64.size + END.size)
    if rest != directory(members):
        raise Malformed("the directory at its end is not that of its members")
    return members


def limit(name: str, allowed: Mapping[str, int]) -> int:
    for pattern, most in allowed.items():
        if re.fullmatch(pattern, name, re.ASCII):
            return most
    raise Malformed(f"{name[:100]!r} is no member of such an archive")


def taken(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise Malformed("it ends too early")
    return data


def unpacked(file: BinaryIO, size: int, target: Path, name: str) -> Member:
    checksum, left, digest = 0, size, hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as copy:
        while left:
            part = taken(file, min(left, BLOCK))
            left -= len(part)
            checksum = zlib.crc32(part, checksum)
            digest.update(part)
            copy.write(part)
    return Member(name, size, checksum, digest.hexdigest())
