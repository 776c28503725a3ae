"""The cache by identity returns results for the same object only."""

from engine.identity_cache import identity_cache


def test_a_result_is_computed_once_for_the_same_object() -> None:
    computed: list[list[int]] = []

    @identity_cache(maxsize=2)
    def total(numbers: list[int]) -> int:
        computed.append(numbers)
        return sum(numbers)

    one, other, third = [1, 2], [1, 2], [3]
    assert [total(one), total(one), total(other), total(other)] == [3, 3, 3, 3]
    assert [numbers is one for numbers in computed] == [True, False]  # an equal list is another object
    assert [total(third), total(third)] == [3, 3]
    assert len(computed) == 3
    assert total(one) == 3
    assert len(computed) == 4  # the third result emptied the full cache


def test_a_new_object_never_gets_the_result_of_a_freed_one() -> None:
    """The cache holds its arguments; otherwise a new object could reuse the id of a freed one."""

    @identity_cache(maxsize=1_000)
    def first(numbers: list[int]) -> int:
        return numbers[0]

    assert [first([number]) for number in range(1_000)] == list(range(1_000))
