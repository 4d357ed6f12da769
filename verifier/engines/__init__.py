"""The names of all engines, without what they need: what a line of results.jsonl may say in place of any other."""

NAMES = (
    *("greedy", "exact", "enumerate", "attention", "boxes", "sequence", "gurobi", "scip", "highs", "z3"),
    *("lirpa-ibp", "lirpa-crown", "lirpa-alpha", "exact-small"),
    *(
        "beam",
        "local",
        "local-released",
        "pdp",
        "pdp-released",
        "genetic",
        "genetic-fast",
        "sempso",
        "leap",
        "a2t",
        "hotflip",
        "best",
        "mcts",
        "random",
    ),
)
