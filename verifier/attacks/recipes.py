"""The attacks by name, each four values: what it wants and may do is said by the user, how it looks is said here.

An attack more is one line here, and one file where its search is a new one.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from swapproof.encodings.errors import BadInput

from .searches.beam_search import Beam
from .searches.climbing_search import Climbing
from .searches.genetic_search import Genetic
from .searches.guided_search import Guided
from .searches.importance_search import ByImportance
from .searches.local_search import LocalSearch
from .searches.pdp_search import Pdp
from .searches.plain_searches import ByGradient, Random, SingleWords
from .searches.search_protocol import Search
from .searches.swarm_search import Swarm
from .searches.tree_search import TreeSearch

Transformation = Literal["task", "typos", "words and typos", "masked", "in place", "kappa"]
"""What may stand in place of a word: the swaps of the task, typing errors, words of a language model that sees a mask
there or the word itself, or the words of the greatest kappa. Each is frozen before the attack begins."""


@dataclass(frozen=True)
class Recipe:
    """`note`: where paper and code disagree, and what of the paper is the frozen space's or the limits' affair."""

    search: Search
    note: str
    transformation: Transformation = "task"
    gradients: bool = False
    natural: bool = False
    """Whether of several sentences the most natural is kept, where perplexities are known: see SP-Attack."""


RECIPES: dict[str, Recipe] = {
    "greedy": Recipe(Beam(1), "The best single swap again and again (TextAttack's GreedySearch)."),
    "beam": Recipe(Beam(4), "Beam search of width 4, as in TextAttack's comparison of searches."),
    "local": Recipe(
        LocalSearch(),
        "After the moves of Liu et al. 2021, from a sentence that reaches the goal to one with fewer swaps: ours.",
    ),
    "local-released": Recipe(
        Climbing(),
        "Liu et al. 2021: climbs the share by single words and ends with the first success, whatever its swaps. As the "
        "released code, but for the other side, which there is that of the text and not of the local optimum.",
    ),
    "pdp": Recipe(
        Pdp(),
        "Yang et al.; the code returns one value for failed and certified, here a failure is one. It keeps 1,280 "
        "texts, here 32: what is drawn ahead from so many mostly comes from poor ones. Then one swap in place of two.",
    ),
    "pdp-released": Recipe(Pdp(1280, 10, exchange=False), "Yang et al. with the sizes of the released code."),
    "textfooler": Recipe(
        ByImportance("delete"),
        "Paper: words deleted for the ranking; code: replaced by <oov>. The paper's way. Its choice by similarity "
        "among several successes is left to --similarity; part of speech and stop words are filters of [swaps].",
    ),
    "pwws": Recipe(
        ByImportance("saliency"),
        "Saliency by an unknown word, times the best gain. The paper swaps named entities too, which is a matter of "
        "[swaps]; the gain is of probabilities. TextAttack 0.3.11 weighs by the share after the swap "
        "and not by what it gained; here it is the gain, as in the paper. An unknown word is one token: where marks "
        "are read apart a word stands for it that the vocabulary does not know. TextAttack writes [UNK] into the text.",
    ),
    "textbugger": Recipe(
        ByImportance("delete"),
        "Five bugs a word: a space, a deletion, an exchange, a look-alike, and the task's synonyms. The code has "
        "neighbours of an embedding for the last.",
        "words and typos",
    ),
    "textbugger-words": Recipe(ByImportance("delete"), "The part of TextBugger that swaps words, on the task's swaps."),
    "deepwordbug": Recipe(
        ByImportance("unknown"),
        "Characters exchanged, replaced, deleted, inserted; its four scores of words are one here, the unknown word, "
        "as in TextAttack. Which character is the same in every run: the paper's is random.",
        "typos",
    ),
    "bert-attack": Recipe(
        ByImportance("unknown"),
        "Words by the mask, candidates of the language model with the word left in place, whole words only: the code "
        "also joins pieces of words. The paper has 48 candidates a word and at most 40 % of the words: say --rho-max.",
        "in place",
    ),
    "bae": Recipe(
        ByImportance("delete"),
        "BAE-R: words replaced, none inserted. The same part of speech is a filter of [swaps] in this house and is not "
        "asked here; the code compares windows of 15 words, --similarity the whole texts.",
        "masked",
    ),
    "clare": Recipe(
        Beam(1),
        "Replacements only; inserting and merging change the number of words. Greedy by exact gain, as the paper; its "
        "minimum probability of a candidate stays with --k-max.",
        "masked",
    ),
    "genetic": Recipe(Genetic(60, 20), "Alzantot et al.; the language model of each step is left to the freezing."),
    "genetic-fast": Recipe(Genetic(60, 40), "Jia et al.'s faster form: 40 generations; the rest as above."),
    "sempso": Recipe(Swarm(60, 20), "Zang et al.; the signs of the velocity are those of the released code."),
    "leap": Recipe(
        Swarm(60, 20, levy=True),
        "Xiao et al. 2023, as in the authors' code in TextAttack's form: see its search. WordNet is [swaps]'s affair.",
    ),
    "a2t": Recipe(
        ByImportance("gradient"),
        "Yoo and Qi rank words by the norm of the gradient at their embedding; here by the most that a swap of the "
        "word adds to first order.",
        gradients=True,
    ),
    "hotflip": Recipe(ByGradient(5), "Ebrahimi et al. on words: see its search.", gradients=True),
    "best": Recipe(
        Guided(), "Ours, for few requests (--queries): no paper. With slopes where the network is read and not smooth."
    ),
    "mcts": Recipe(
        TreeSearch(),
        "La Malfa et al.: UCT over all leaves with alpha 0.5, 1,000 simulations a vertex, Q the greatest drop. The "
        "code divides Q by the simulations, hardly counts visits and swaps a random word besides; the paper's way.",
    ),
    "sp-attack": Recipe(
        SingleWords(50),
        "Xu et al.: the 50 words of the greatest kappa (--kappa FILE, from `measure --quantity kappa`) at every word. "
        "With --causal-model it keeps, as the paper, successes of similarity above 0.8, and of these the one with the "
        "greatest 3 cos - 20 perplexity ratio; H is all-MiniLM-L6-v2 here. Without it, the one with the best score.",
        "kappa",
        natural=True,
    ),
    "random": Recipe(Random(50), "50 random sentences of each number of swaps: what any other must beat."),
}


def recipe_named(name: str) -> Recipe:
    if name in RECIPES:
        return RECIPES[name]
    near = difflib.get_close_matches(name, RECIPES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(RECIPES)}"
    raise BadInput(f"no attack is named {name!r}; {hint}")
