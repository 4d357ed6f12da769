"""Texts with other words: what moves, what never does, and by which rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_learners import BODIES, SYNONYMS, WORDS, learner, setting, started

from swapproof.models.defences.changed_words import A2t, Masked, Rand, SpDefence, Substituted
from swapproof.models.defences.listed_examples import Ada, MixAda, listed
from swapproof.models.defences.live_examples import AdaLive
from swapproof.models.defences.synonym_hull import Ascc, Dne, hull_points, present, second_order
from swapproof.models.defences.synonym_pairs import neighbour_table
from swapproof.models.errors import BadInput

torch = pytest.importorskip("torch")

TOKENS = torch.tensor([[2, 7, 0, 0, 0], [5, 9, 8, 1, 3]])
LABELS = torch.tensor([1, 0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.json").write_text(json.dumps(SYNONYMS), encoding="utf-8")
    return tmp_path


def read_by(defence: object, folder: Path, batches: int = 40) -> list[list[list[int]]]:
    """The tokens that the network reads in so many steps."""
    from swapproof.models.defences import training_rule

    rule = started(defence, BODIES["mean"], folder)  # type: ignore[arg-type]
    seen = []

    class Watched(training_rule.Learner):
        def loss(self, tokens, labels):  # type: ignore[no-untyped-def]
            seen.append(tokens.tolist())
            return super().loss(tokens, labels)

    plain = learner(BODIES["mean"], rule)
    network = Watched(plain.shape, plain.weights, rule, plain.noise)
    for _ in range(batches):
        rule.learn(network, TOKENS, LABELS, 0.5)
    return seen


def test_rand_changes_one_word_of_every_text_and_never_padding(folder: Path) -> None:
    places = set()
    for first, second in read_by(Rand(), folder):
        for text, original in zip((first, second), TOKENS.tolist(), strict=True):
            changed = [place for place in range(5) if text[place] != original[place]]
            assert len(changed) <= 1
            assert all(original[place] != 0 and text[place] >= 2 for place in changed)
            places |= {(original[0], place) for place in changed}
    assert places == {(2, 0), (2, 1), *((5, place) for place in range(5))}


@pytest.mark.parametrize("defence", [Rand(), SpDefence()])
def test_tuned_networks_are_first_trained_without(folder: Path, defence: Rand | SpDefence) -> None:
    rule = started(defence, BODIES["mean"], folder)
    network = learner(BODIES["mean"], rule)
    clean = network.loss(TOKENS, LABELS).item()
    assert [rule.learn(network, TOKENS, LABELS, 0.49) for _ in range(8)] == [pytest.approx(clean)] * 8
    assert len({round(rule.learn(network, TOKENS, LABELS, 0.5), 6) for _ in range(8)}) > 1


def test_masks_hide_the_rounded_share_and_keep_two_words(folder: Path) -> None:
    for first, second in read_by(Masked(rate=0.5), folder):
        assert first == TOKENS[0].tolist()  # of two words both stay
        assert sum(a != b or a == 1 for a, b in zip(second, TOKENS[1].tolist(), strict=True)) in (2, 3)
        assert 0 not in second


def test_substitution_draws_among_a_word_and_its_synonyms_alike(folder: Path) -> None:
    drawn = [first[0] for first, _ in read_by(Substituted("s.json"), folder, 60)]
    assert all(8 < drawn.count(word) < 32 for word in (2, 3, 4))
    assert all(text[1] == [5, 9, 8, 1, 3] or text[1][3] == 1 for text in read_by(Substituted("s.json"), folder, 20))


def test_sp_defense_takes_the_worst_word_of_the_vocabulary_to_first_order() -> None:
    """Which for a linear network is the worst one."""
    from swapproof.models.architectures.mean_network import Mean
    from swapproof.models.defences.changed_words import worst_swaps

    network = learner(Mean(3, ()), seed=2)
    places, words = worst_swaps(network, TOKENS, LABELS, torch.arange(2, len(WORDS)))
    for text, label, place, word in zip(TOKENS, LABELS, places.tolist(), words.tolist(), strict=True):
        losses = {}
        for at in (text != 0).nonzero()[:, 0].tolist():
            for other in range(2, len(WORDS)):
                swapped = text.clone()
                swapped[at] = other
                losses[at, other] = network.loss(swapped[None], label[None]).item()
        assert losses[place, word] == pytest.approx(max(losses.values()), abs=1e-6)


def test_live_examples_are_the_best_swaps_of_the_network_as_it_is(folder: Path) -> None:
    """Greedy with one swap: exactly the texts that some single swap breaks, each by the swap of the greatest loss."""
    rule = started(AdaLive("s.json", texts=1.0, words=0.1), BODIES["cnn"], folder)
    for seed in range(6):
        network = learner(BODIES["cnn"], rule, seed=seed)
        answers = network.logits(network.vectors(TOKENS), TOKENS != 0).argmax(dim=1)
        sentences, broken = rule.attacked(network, TOKENS, answers)  # type: ignore[attr-defined]
        for text, label, sentence, fooled in zip(TOKENS, answers, sentences, broken.tolist(), strict=True):
            ways = {}
            for place in (text != 0).nonzero()[:, 0].tolist():
                for other in SYNONYMS.get(WORDS[int(text[place])], []):
                    swapped = text.clone()
                    swapped[place] = WORDS.index(other)
                    ways[tuple(swapped.tolist())] = network.loss(swapped[None], label[None]).item()
            before = network.loss(text[None], label[None]).item()
            if max(ways.values(), default=-1.0) > before:
                assert ways[tuple(sentence.tolist())] == pytest.approx(max(ways.values()), abs=1e-6)
            else:
                assert torch.equal(sentence, text)
            answer = network.logits(network.vectors(sentence[None]), sentence[None] != 0).argmax()
            assert fooled == bool(answer != label)
        wrong = 1 - answers
        assert not rule.attacked(network, TOKENS, wrong)[1].any()  # type: ignore[attr-defined]
    assert rule.learn(learner(BODIES["cnn"], rule), TOKENS, LABELS, 0.0) > 0


def test_special_words_are_those_of_other_classes() -> None:
    from swapproof.models.defences.changed_words import special_words

    tokens = torch.tensor([[2, 2, 2, 7, 0], [2, 7, 1, 0, 0], [5, 7, 2, 0, 0], [5, 7, 0, 0, 0]])
    shape = setting(BODIES["mean"]).shape
    found = special_words(tokens, torch.tensor([0, 0, 1, 1]), shape, 1.0, torch.arange(2, shape.vocabulary))
    assert [one.tolist() for one in found] == [[5], [2]]  # log 4 > 1; padding, unknown and shared words are none


def test_a_text_of_no_class_of_special_words_stays(folder: Path) -> None:
    assert read_by(SpDefence(), folder, 5)


def test_a2t_swaps_few_words_each_for_a_synonym_that_raises_the_loss(folder: Path) -> None:
    rule = started(A2t("s.json", words=0.2, texts=1.0), BODIES["mean"], folder)
    network = learner(BODIES["mean"], rule)
    near = neighbour_table(WORDS, SYNONYMS, 8)
    attacked = rule.attacked(network, TOKENS, LABELS)  # type: ignore[attr-defined]
    for text, original in zip(attacked.tolist(), TOKENS.tolist(), strict=True):
        changed = [place for place in range(5) if text[place] != original[place]]
        assert len(changed) <= 1
        assert all(text[place] in near[original[place]] for place in changed)
    rule.learn(network, TOKENS, LABELS, 0.0)


def test_points_of_the_hull_are_means_of_a_word_and_its_synonyms(folder: Path) -> None:
    """And padding and words without synonyms are themselves."""
    near = torch.from_numpy(neighbour_table(WORDS, SYNONYMS, 8))[TOKENS]
    table = torch.randn(len(WORDS), 3, generator=torch.Generator().manual_seed(0))
    table[0] = 0.0
    weights = torch.randn(near.shape, generator=torch.Generator().manual_seed(1))
    points = hull_points(table, near, weights)
    good = torch.softmax(weights[0, 0], dim=0) @ table[[2, 3, 4]]
    torch.testing.assert_close(points[0, 0], good)
    for text, place in ((0, 1), (0, 2), (1, 1), (1, 3)):
        torch.testing.assert_close(points[text, place], table[TOKENS[text, place]])
    assert present(near)[0, 2].tolist() == [True, False, False]
    for defence in (Ascc("s.json", steps=2), Dne("s.json", ascents=2)):
        rule = started(defence, BODIES["cnn"], folder)
        assert rule.learn(learner(BODIES["cnn"], rule), TOKENS, LABELS, 0.0) > 0


def test_synonyms_of_synonyms_come_behind_synonyms(folder: Path) -> None:
    near, first = second_order(WORDS, folder / "s.json", 8)
    assert list(dict.fromkeys(near[3].tolist())) == [3, 2, 4]  # fine: good, and great, a synonym of good
    assert first[3] == 2
    assert near[0].tolist() == [0] * near.shape[1]


def test_dirichlet_shares_add_up_to_one(folder: Path) -> None:
    rule = started(Dne("s.json"), BODIES["mean"], folder)
    near = rule.near[TOKENS]  # type: ignore[attr-defined]
    shares = rule.shares(near, rule.first[TOKENS], torch.Generator().manual_seed(0))  # type: ignore[attr-defined]
    torch.testing.assert_close(shares.sum(dim=-1), torch.ones(2, 5))
    assert not shares[~present(near)].any()


def test_listed_examples_are_the_swapped_texts(folder: Path) -> None:
    lines = [
        {"text": "good film", "label": 1, "witness": {"swaps": [{"position": 0, "from": "good", "to": "fine"}]}},
        {"text": "bad plot", "label": "a", "witness": {"swaps": [{"position": 0, "to": "poor"}]}},
        {"text": "bad film", "label": 0, "witness": None},
    ]
    (folder / "e.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    tokens, labels = listed(setting(BODIES["mean"], folder), folder / "e.jsonl")
    assert tokens.tolist() == [[3, 7, 0, 0, 0], [6, 9, 0, 0, 0]]
    assert labels.tolist() == [1, 0]
    more = Ada("e.jsonl", times=3).more_texts(setting(BODIES["mean"], folder))
    assert more is not None
    assert more[0].shape == (6, 5)
    rule = started(MixAda("e.jsonl"), BODIES["bilstm"], folder)
    assert rule.learn(learner(BODIES["bilstm"], rule), TOKENS, LABELS, 0.0) > 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: no example"),
        ('{"text": "good", "label": 7, "witness": {"swaps": [{"position": 0, "to": "fine"}]}}', "no such class"),
        ('{"text": "good", "label": 1, "witness": {"swaps": [{"position": 4, "to": "fine"}]}}', "a text of 1 words"),
        ('{"text": "good", "label": 1, "witness": null}', "nothing to learn from"),
    ],
)
def test_a_bad_list_of_examples_is_one_line(folder: Path, line: str, message: str) -> None:
    (folder / "e.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match=message) as refusal:
        listed(setting(BODIES["mean"], folder), folder / "e.jsonl")
    assert "\n" not in str(refusal.value)
