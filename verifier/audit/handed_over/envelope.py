"""Who vouches for what: an in-toto Statement about files, in a DSSE envelope, signed with an ed25519 key.

The signature covers PAE(payload) = "DSSEv1 " len(type) " " type " " len(payload) " " payload. The `keyid` of a
signature is the public key itself, "ed25519:" and 64 hexadecimal digits, so that anybody can tell a damaged signature
from one by a key they do not know. Whose key it is, an envelope cannot say: compare the fingerprint.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.models.errors import unreadable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD = "application/vnd.in-toto+json"
KEY_ID = "ed25519:"
PRIME = 2**255 - 19
TORSION = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7
SMALL_ORDER = frozenset({0, 1, PRIME - 1, TORSION, PRIME - TORSION})
"""y of the eight points of ed25519 whose order divides 8: for such a key there are signatures that fit any message, and
they show nothing. The points of order 4 have y = 0, that of order 1 has 1, of order 2 -1, of order 8 plus or minus
TORSION."""


class Tampered(ValueError):
    """An envelope that is not as we write it, or whose signature does not fit."""


@dataclass(frozen=True)
class Signed:
    """What an envelope holds, and the public key whose signature of it is good; None when nobody signed."""

    statement: dict[str, Any]
    key: bytes | None


def statement_bytes(subjects: Iterable[tuple[str, str]], kind: str, predicate: Mapping[str, Any]) -> bytes:
    """`subjects` are (name, SHA-256)."""
    listed = [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects)]
    return canonical({"_type": STATEMENT, "subject": listed, "predicateType": kind, "predicate": predicate})


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def encoded(payload: bytes) -> bytes:
    """The pre-authentication encoding of DSSE."""
    kind = PAYLOAD.encode()
    return b" ".join([b"DSSEv1", b"%d" % len(kind), kind, b"%d" % len(payload), payload])


def seal(payload: bytes, key: Ed25519PrivateKey | None) -> bytes:
    signatures = []
    if key is not None:
        raw = key.public_key().public_bytes_raw()
        signatures.append({"keyid": KEY_ID + raw.hex(), "sig": text64(key.sign(encoded(payload)))})
    return canonical({"payloadType": PAYLOAD, "payload": text64(payload), "signatures": signatures}) + b"\n"


def text64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unseal(envelope: bytes) -> Signed:
    """Raises Tampered; a signature, when there is one, is good for the key it names, whoever's that is."""
    try:
        outer = json.loads(envelope)
        payload = base64.b64decode(outer["payload"], validate=True)
        statement = json.loads(payload)
        signatures = outer["signatures"]
        again = {"payloadType": PAYLOAD, "payload": text64(payload), "signatures": signatures}
        plain = canonical(again) + b"\n" == envelope and canonical(statement) == payload
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Tampered(f"the envelope cannot be read ({type(error).__name__})") from None
    if not plain or not isinstance(statement, dict) or statement.get("_type") != STATEMENT:
        raise Tampered("the envelope is not a canonical in-toto statement of version 1")
    if signatures == []:
        return Signed(statement, None)
    try:
        ((name, text),) = [(one["keyid"], one["sig"]) for one in signatures if one.keys() == {"keyid", "sig"}]
        raw, signature = bytes.fromhex(name.removeprefix(KEY_ID)), base64.b64decode(text, validate=True)
        well_formed = len(signatures) == 1 and name == KEY_ID + raw.hex() and text == text64(signature)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
        well_formed = False
    if not well_formed:
        raise Tampered("the signature is not one of an ed25519 key")
    if is_of_small_order(raw):
        raise Tampered("the signature is by a key of small order, which fits every message: it is nobody's")
    if not fits(raw, signature, payload):
        raise Tampered("the signature does not fit: the statement was changed after it was signed")
    return Signed(statement, raw)


def is_of_small_order(raw: bytes) -> bool:
    """Of the 32 bytes of a public key: y, least byte first; the highest bit is the sign of x, which does not matter.
    y may be written as y + PRIME, where that fits."""
    return len(raw) == 32 and (int.from_bytes(raw, "little") % 2**255) % PRIME in SMALL_ORDER


def fits(raw: bytes, signature: bytes, payload: bytes) -> bool:
    ed25519, _, invalid = cryptography()
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(raw).verify(signature, encoded(payload))
    except (ValueError, invalid):
        return False
    return True


def new_key(path: Path) -> tuple[Path, str]:
    """Writes a private key, for its owner only, and the public key beside it; returns that file and its fingerprint."""
    ed25519, serialization, _ = cryptography()
    key: Ed25519PrivateKey = ed25519.Ed25519PrivateKey.generate()
    public = path.with_name(f"{path.name.removesuffix('.pem')}.pub.pem")
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    shown = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    for target, data, mode in ((path, secret, 0o600), (public, shown, 0o644)):
        try:
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(data)
        except FileExistsError:
            raise BadInput(f"{target}: there already; a key is never written over") from None
        except OSError as error:
            raise BadInput(f"{target}: cannot be written ({error.strerror or error})") from None
    return public, fingerprint(key.public_key().public_bytes_raw())


def private_key(path: Path) -> Ed25519PrivateKey:
    ed25519, serialization, _ = cryptography()
    data = read(path)
    try:
        key: object = serialization.load_pem_private_key(data, password=None)
    except TypeError:
        raise Unsupported(f"{path}: the key is encrypted; give one without a passphrase") from None
    except ValueError:
        raise BadInput(f"{path}: no private key in PEM form; `swapproof bundle --new-key` makes one") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise Unsupported(f"{path}: a key of another kind than ed25519; `swapproof bundle --new-key` makes one")
    signer: Ed25519PrivateKey = key
    return signer


def public_key(path: Path) -> bytes:
    """The 32 bytes of a public key file."""
    ed25519, serialization, _ = cryptography()
    data = read(path)
    try:
        key: object = serialization.load_pem_public_key(data)
    except ValueError:
        raise BadInput(f"{path}: no public key in PEM form") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise Unsupported(f"{path}: a key of another kind than ed25519")
    raw: bytes = key.public_bytes_raw()
    if is_of_small_order(raw):
        raise BadInput(f"{path}: a key of small order, whose signatures fit every message; ask for another one")
    return raw


def fingerprint(raw: bytes) -> str:
    """SHA-256 of the key in DER form, as `openssl pkey -pubin -outform DER | sha256sum` gives it."""
    return hashlib.sha256(bytes.fromhex("302a300506032b6570032100") + raw).hexdigest()


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def cryptography() -> tuple[Any, Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise Unsupported("signatures need the package `cryptography`: pip install cryptography") from None
    return ed25519, serialization, InvalidSignature
