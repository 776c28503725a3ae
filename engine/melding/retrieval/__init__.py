"""Joker retrieval: the rules on moving the jokers of the table (R46 to R50, R53; docs/rules.md, Retrieval).

The rules depend on where each tile came from, but equal tiles are interchangeable. So a play is legal if *some*
assignment of the old tiles to the new ones is: which old joker is which new joker, and which old meld, or the rack,
each numbered tile came from. The search has three steps:

1. `outcomes`: For each old meld, enumerate what may have become of its jokers. Each was *kept* at a position of a new
   meld, or was *retrieved* and is anywhere in some new meld. Each outcome demands conditions: certain tiles came
   from certain melds, or at least two tiles of a meld came from the rack.
2. `search`: Combine the outcomes of one old meld with those of the next. Equal combinations are merged, and
   combinations that cannot become legal are dropped.
3. `origins`: Decide face by face whether the numbered tiles can have come from where the conditions demand. A face has
   at most three copies, so it has few assignments, and only the progress of each condition passes to the next face.

The other modules: `demands` (the options as one value), `tables` (facts derived from the two tables), `outcome` (the
type), `conditions` (the conditions of outcomes), `if_replaced` (outcomes under NEW_MELD_IF_REPLACED), `replacements`
(the tiles that replace retrieved jokers), and `reasons` (the violations).
"""

from engine.melding.retrieval.demands import limits_retrieval
from engine.melding.retrieval.reasons import may_be_retrieved, retrieval_reasons

__all__ = ["limits_retrieval", "may_be_retrieved", "retrieval_reasons"]
