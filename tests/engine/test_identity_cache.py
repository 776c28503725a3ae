from engine.fast.identity_cache import kept


def test_what_was_made_of_a_thing_is_made_once() -> None:
    asked: list[list[int]] = []

    @kept(most=2)
    def total(numbers: list[int]) -> int:
        asked.append(numbers)
        return sum(numbers)

    one, other, third = [1, 2], [1, 2], [3]
    assert [total(one), total(one), total(other), total(other)] == [3, 3, 3, 3]
    assert [numbers is one for numbers in asked] == [True, False]  # equal is not the same
    assert [total(third), total(third)] == [3, 3]
    assert len(asked) == 3
    assert total(one) == 3
    assert len(asked) == 4  # there was no room for a third, so it started over


def test_no_thing_is_taken_for_one_that_has_ended() -> None:
    """What is remembered holds its things: otherwise a new one could get the id of an old one."""

    @kept(most=1_000)
    def first(numbers: list[int]) -> int:
        return numbers[0]

    assert [first([number]) for number in range(1_000)] == list(range(1_000))
