"""A short list of English stop words: words that carry grammar rather than meaning."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a an the this that these those some any each every either neither both all no none such same other another
    i me my mine myself you your yours yourself he him his himself she her hers herself it its itself
    we us our ours ourselves they them their theirs themselves who whom whose which what one oneself
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would ought
    isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't
    can't cannot couldn't won't wouldn't shouldn't
    n't 's 'd 'll 're 've 'm i'm you're he's she's it's we're they're i've you've we've they've i'd i'll
    and or but nor so yet if then else because as although though unless until while whereas whether than
    of at by for with about against between among into through during before after above below to from up down
    in on off over under out upon within without toward towards across along around behind beside beyond near per via
    not never only just also too very again once here there when where why how now ever
    """.split()  # noqa: SIM905
)
