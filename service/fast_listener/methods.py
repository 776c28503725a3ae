"""ValidationService's RPCs as methods of the completion-queue server."""

from collections.abc import Mapping

from service.fast_listener.calls import Method
from service.fast_listener.interceptor import FastInterceptor
from service.grpc_api.turn_validator import Validator
from service.grpc_api.validation_service import path_of


def validation_methods(validation: Validator, interceptor: FastInterceptor) -> Mapping[str, Method]:
    """Returns the methods by name."""
    unary, in_steps = interceptor.unary, interceptor.unary_in_steps
    return {
        "ValidateTurn": in_steps(path_of("ValidateTurn"), validation.turn_in_steps, validation.turn_at_once),
        "ValidateMelds": unary(path_of("ValidateMelds"), validation.validate_melds, validation.melds_at_once),
        "BatchValidateTurns": in_steps(path_of("BatchValidateTurns"), validation.batch),
        "StreamValidateTurns": interceptor.stream(path_of("StreamValidateTurns"), validation.stream),
        "ScoreRound": unary(path_of("ScoreRound"), validation.score_round, validation.score_at_once),
        "ListRulesets": unary(path_of("ListRulesets"), validation.list_rulesets, validation.rulesets_at_once),
        "ListMessages": unary(path_of("ListMessages"), validation.list_messages, validation.messages_at_once),
    }
