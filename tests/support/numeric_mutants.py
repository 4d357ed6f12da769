"""Changes of certificates of boxes and balls: numbers one unit beside, other radii and norms, keys exchanged, trees cut
short, bytes of trees changed."""

from __future__ import annotations

import base64
import copy
import random
from fractions import Fraction
from typing import Any

from numeric_twins import Certificate, canonical, encoded

UNITS = [Fraction(1, 2**place) for place in (0, 10, 20, 40, 64, 200)]
BYTES = (0, 1, 2, 3, 4, 5, 6, 24, 63, 64, 65, 127, 128, 255)


def of_tree(tree: bytes, source: random.Random) -> bytes:
    out = bytearray(tree)
    for _ in range(source.choice((1, 1, 2))):
        at = source.randrange(len(out) + 1)
        match source.randrange(6):
            case 0:
                out[at : at + 1] = bytes([source.choice(BYTES)])
            case 1 if at < len(out):
                out[at] ^= 1 << source.randrange(8)
            case 2:
                del out[at : at + source.randint(1, 4)]
            case 3:
                out[at:at] = bytes([source.choice(BYTES)])
            case 4:
                del out[at:]
            case _:
                start = source.randrange(len(out) + 1)
                out[at:at] = out[start : start + source.randint(1, 8)]
    return bytes(out)


def moved(text: str, source: random.Random) -> str:
    """A number beside, or another way to write it."""
    if source.random() < 0.1:
        return source.choice(["0", "-0", "1/1", "2/4", text + "0", "-" + text, text + "/1", "1e3", "", "01", "1/0"])
    return str(Fraction(text) + source.choice([-1, 1]) * source.choice(UNITS))


def of_numbers(value: Certificate, source: random.Random) -> Certificate:
    data = bytearray(base64.b64decode(value["numbers"]))
    match source.randrange(6):
        case 0:
            return {**value, "form": source.choice([0, 1, 2, 3])}
        case 1:
            del data[source.randrange(len(data)) :]
        case 2:
            data[-1] ^= 0x80
        case 3:
            data[source.randrange(len(data))] = source.choice(BYTES)
        case _:
            data[source.randrange(len(data)) // 4 * 4] ^= 1
    return {**value, "numbers": encoded(bytes(data))}


def mutant(certificate: Certificate, source: random.Random) -> bytes:
    top = copy.deepcopy(certificate)
    if source.random() < 0.04:
        text = canonical(top)
        at = source.randrange(len(text))
        return text[:at] + source.choice([b"", b" ", b"\0", b",", b"1", text[at : at + 1] * 2]) + text[at + 1 :]
    case = source.choice(top["cases"]) if top["cases"] else {}
    if not case or source.random() < 0.2:
        change_of_head(top, source)
    elif "box" in case:
        change_of_box(case, source)
    else:
        change_of_ball(case, source)
    return canonical(top)


def change_of_head(top: Certificate, source: random.Random) -> None:
    key = source.choice(sorted(top))
    match source.randrange(4):
        case 0:
            del top[key]
        case 1:
            other = source.choice(sorted(top))
            top[key], top[other] = top[other], top[key]
        case _ if key in ("center", "widths"):
            top[key] = of_numbers(top[key], source)
        case _ if isinstance(top[key], int):
            top[key] += source.choice([-1, 1, 2**31])
        case _ if key == "norm":
            top[key] = {"l2": "linf", "linf": "l2"}[top[key]]
        case _ if key == "rivals":
            top[key] = source.choice([[], [0], [1], [0, 1], [1, 0], [*top[key], 7]])
        case _ if key == "cases":
            top[key] = source.choice([[], top[key] * 2, top[key][:-1]])
        case _:
            top[key] = source.choice([0, None, "", [], {}, "0" * 64])


def change_of_box(case: Any, source: random.Random) -> None:
    fact = source.choice(case["constraints"]) if case["constraints"] else {}
    match source.randrange(9):
        case 0 | 1:
            pair = source.choice(case["box"])
            at = source.randrange(2)
            pair[at] = moved(pair[at], source)
        case 2 | 3 if fact:
            fact["constant"] = moved(fact["constant"], source)
        case 4 if fact and fact["coefficients"]:
            key = source.choice(sorted(fact["coefficients"]))
            fact["coefficients"][key] = moved(fact["coefficients"][key], source)
        case 5 if fact:
            fact["strict"] = 1 - fact["strict"]
        case 6:
            case["constraints"] = source.choice([[], case["constraints"] * 2, case["constraints"][1:]])
        case _:
            case["tree"] = encoded(of_tree(base64.b64decode(case["tree"]), source))


def change_of_ball(case: Any, source: random.Random) -> None:
    match source.randrange(6 if "trees" in case else 3):
        case 0 | 1:
            case["radius"] = moved(case["radius"], source)
        case 2:
            run = source.choice(case["free"])
            run[source.randrange(2)] += source.choice([-1, 1])
        case 3:
            case["trees"] = source.choice([[], case["trees"] * 2, case["trees"][1:]])
        case _:
            at = source.randrange(len(case["trees"]))
            case["trees"][at] = encoded(of_tree(base64.b64decode(case["trees"][at]), source))
