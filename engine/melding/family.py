"""The family of melding games: the functions of engine.family.Family."""

from engine.melding.deal import deal_round as deal
from engine.melding.evolution import evolve
from engine.melding.turns import arrange, decide
from engine.melding.turns.settlement import settle
from engine.melding.turns.timeouts import time_out

__all__ = ["arrange", "deal", "decide", "evolve", "settle", "time_out"]
