"""SQL92 filters: what they mean, and what is refused where."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.filtering.sql92 import MAX_OPERANDS, FilterCache, SqlError, SqlTooLarge, compile_filter
from skyrocket.filtering.sql92_words import KEYWORDS

PROPERTIES = {"price": "7", "big": "9999999999", "rate": "2.5", "region": "eu", "flag": "true", "empty_like": "''"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("price > 5", True),
        ("price > 7", False),
        ("price >= 7", True),
        ("price < 8 AND price <= 7", True),
        ("price = 7", True),
        ("price <> 7", False),
        ("price = '7'", True),
        ("price = 7L", True),
        ("price = 7.0", True),
        ("big > 5", False),  # 32 bits asked for, more given: an evaluation error
        ("big > 9999999998", True),
        ("rate > 2", False),  # "2.5" is no whole number
        ("rate > 2.0", True),
        ("rate BETWEEN 2.0 AND 3.0", True),
        ("price BETWEEN 5 AND 7", True),
        ("price NOT BETWEEN 5 AND 6", True),
        ("price BETWEEN -1 AND 10", True),
        ("price > -5", True),
        ("price > - -5", True),
        ("- price < 5", False),  # unary minus of a property is unknown
        ("+7 = price", True),
        ("region IN ('eu', 'us')", True),
        ("region NOT IN ('eu')", False),
        ("missing NOT IN ('eu')", False),
        ("missing IS NULL", True),
        ("region IS NOT NULL", True),
        ("NOT (missing = 5)", False),  # unknown stays unknown
        ("missing = 5 OR price = 7", True),
        ("missing = 5 AND price = 7", False),
        ("region", False),  # a bare property is never true
        ("NOT region", True),
        ("NOT missing", False),
        ("flag = TRUE", True),
        ("flag = FALSE", False),
        ("TRUE = flag", False),  # RocketMQ cannot do this
        ("TRUE", True),
        ("NULL", False),
        ("NULL IS NULL", True),
        ("region CONTAINS 'e'", True),
        ("region NOT CONTAINS 'x'", True),
        ("missing NOT CONTAINS 'x'", False),
        ("region CONTAINS ''", False),
        ("region NOT CONTAINS ''", False),
        ("region STARTSWITH 'e' AND region ENDSWITH 'u'", True),
        ("region NOT STARTSWITH 'u'", True),
        ("region = 'EU'", False),
        ("Region IS NULL", True),
        ("empty_like = ''''''", True),
        ("price > 5 aNd region iN ('eu')", True),
        ("price > 5 -- not above\n AND /* five */ region = 'eu'", True),
        ("price = 7 = TRUE", True),
        ("(price)", False),
        ("price = price", True),
        ("price < rate", False),  # two properties are compared as numbers
        ("rate < price", True),
        ("rate < region", False),
        ("price = 7 -- a comment without an end of line is none", True),
        ("price > 5 garbage ( ' ? nobody reads this", True),
        ("missing = gone", True),  # both absent: RocketMQ calls that equal
        ("region = missing", False),
        ("1 = 1", True),
        ("1 = 2", False),
        ("5 > 3.5", True),
        ("'a' = 'a'", True),
    ],
)
def test_what_an_expression_says_of_a_message(expression: str, expected: bool) -> None:
    assert compile_filter(expression).matches(PROPERTIES) is expected


@pytest.mark.parametrize(
    ("expression", "reason", "position"),
    [
        ("", "a property, a literal or ( expected, end of the expression found", 0),
        ("price >", "a property, a literal or ( expected", 7),
        ("price > 'x'", "compares numbers", 8),
        ("price > TRUE", "compares numbers", 8),
        ("price > NULL", "compares numbers", 8),
        ("(a = 1) > 5", "compares numbers", 1),
        ("a = NULL", "use IS NULL", 4),
        ("TRUE = 5", "cannot be compared", 7),
        ("5", "must be true or false", 0),
        ("'text'", "must be true or false", 0),
        ("a = 1 AND 5", "right side of AND", 10),
        ("5 OR a = 1", "left side of OR", 0),
        ("NOT 5", "what NOT turns", 4),
        ("5 IN ('x')", "IN asks for a property", 0),
        ("a IN (5)", "IN lists strings", 6),
        ("a IN ()", "IN lists strings", 6),
        ("a CONTAINS b", "followed by a string", 11),
        ("a BETWEEN 7 AND 5", "above the upper one", 10),
        ("a BETWEEN NULL AND 5", "two bounds", 10),
        ("a BETWEEN 1 5", "AND expected", 12),
        ("a IS 5", "NOT expected", 5),
        ("(a = 1", ") expected", 6),
        ("a = 0.0", "not above zero", 4),
        ("a = 1e999", "too large", 4),
        ("a = 99999999999999999999", "64 bits", 4),
        ("a > " + "9" * 5000, "64 bits", 4),  # more digits than Python itself reads
        ("a = 'open", "never closed", 4),
        ("a = #", "'#'", 4),
        ("NOT a > 5", "compares numbers", 0),
        ("(" * 200 + "a", "100 levels", None),
    ],
)
def test_what_is_refused_names_the_reason_and_the_place(expression: str, reason: str, position: int | None) -> None:
    with pytest.raises(SqlError, match=re.escape(reason)) as refused:
        compile_filter(expression)
    if position is not None:
        assert refused.value.position == position
        assert str(refused.value).splitlines()[-1] == "  " + " " * position + "^"


def test_the_place_in_a_text_of_several_lines() -> None:
    with pytest.raises(SqlError, match=r"line 2, column 6\n   b > 'x'\n       +\^$"):
        compile_filter("a = 1 AND\n b > 'x'")


TRUTHS = {"T": "TRUE", "F": "FALSE", "U": "(missing = 1)"}


def kleene(operator: str, left: str, right: str) -> str:
    if operator == "AND":
        return "F" if "F" in (left, right) else "U" if "U" in (left, right) else "T"
    return "T" if "T" in (left, right) else "U" if "U" in (left, right) else "F"


@given(
    st.recursive(
        st.sampled_from("TFU").map(lambda truth: (TRUTHS[truth], truth)),
        lambda inner: (
            st.tuples(st.sampled_from(["AND", "OR"]), inner, inner).map(
                lambda parts: (
                    f"({parts[1][0]} {parts[0]} {parts[2][0]})",
                    kleene(parts[0], parts[1][1], parts[2][1]),
                )
            )
            | inner.map(lambda part: (f"(NOT {part[0]})", {"T": "F", "F": "T", "U": "U"}[part[1]]))
        ),
        max_leaves=12,
    )
)
def test_three_values_follow_kleene(case: tuple[str, str]) -> None:
    expression, truth = case
    assert compile_filter(expression).matches({}) is (truth == "T")
    assert compile_filter(f"NOT {expression}").matches({}) is (truth == "F")


@given(
    st.lists(
        st.sampled_from(
            [*sorted(KEYWORDS), "a", "b", "5", "1.5", "'x'", "=", "<>", "<", ">=", "(", ")", ",", "-", "+"]
        ),
        max_size=14,
    ).map(" ".join)
    | st.text(max_size=40),
    st.dictionaries(st.sampled_from("ab"), st.text(max_size=5)),
)
def test_any_text_is_read_or_refused_and_any_message_answered(expression: str, properties: dict[str, str]) -> None:
    try:
        wanted = compile_filter(expression)
    except SqlError as error:
        position = error.position
    else:
        position = 0
        assert wanted.matches(properties) in (True, False)
    assert 0 <= position <= len(expression)


@pytest.mark.parametrize("blanks", [" ", "\x00", "\x03", "\x1b\x1f\n", "\x00 \x08"])
@pytest.mark.parametrize(("text", "above", "below"), [("Infinity", True, False), ("-Infinity", False, True)])
def test_infinity_is_read_with_all_the_blanks_that_java_takes_away(
    blanks: str, text: str, above: bool, below: bool
) -> None:
    """One such property ended the pulls of every consumer that filtered by it."""
    properties = {"rate": f"{blanks}{text}{blanks}"}
    assert compile_filter("rate > 2.5").matches(properties) is above
    assert compile_filter("rate < 2.5").matches(properties) is below


_BLANK_SIGNS = st.text(st.characters(max_codepoint=32), max_size=3)
_NUMBER_TEXTS = st.sampled_from(["Infinity", "NaN", "1", "1.5", ".5", "5.", "1e9", "2f", "3D", "1e", "f", "Inf", ""])


@given(
    st.tuples(_BLANK_SIGNS, st.sampled_from(["", "+", "-"]), _NUMBER_TEXTS, _BLANK_SIGNS).map("".join),
    st.sampled_from(["a > 1.5", "a = 1.5", "1.5 > a", "a > b", "a BETWEEN 0.5 AND 2.5", "a > 1", "a < 5L"]),
)
def test_whatever_looks_like_a_number_is_answered(text: str, expression: str) -> None:
    assert compile_filter(expression).matches({"a": text, "b": "2"}) in (True, False)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1))
def test_whole_numbers_compare_as_numbers(value: int, bound: int) -> None:
    properties = {"n": str(value)}
    assert compile_filter(f"n > {bound}").matches(properties) is (value > bound)
    assert compile_filter(f"n = {bound}").matches(properties) is (value == bound)
    assert compile_filter(f"n BETWEEN {bound} AND 2147483647").matches(properties) is (value >= bound)


@pytest.mark.parametrize(("joint", "wanted"), [(" OR ", "999"), (" AND ", "none")])
def test_a_thousand_terms_are_read_and_asked(joint: str, wanted: str) -> None:
    read = compile_filter(joint.join(f"n{'' if joint == ' OR ' else number} = '{number}'" for number in range(1000)))
    assert read.matches({"n": wanted}) is (joint == " OR ")
    assert not read.matches({"n": "other"})
    assert read.cost == 2000


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("a = 1 OR " * 200_000 + "a = 1", "too long"),
        (" OR ".join(["1=1"] * MAX_OPERANDS), f"more than {MAX_OPERANDS} operands"),
        ("(" * 101 + "a = 1" + ")" * 101, "more than 100 levels"),
        ("a" + " = b" * 102, "more than 100 tests of what a test has given"),
        ("a" + " IS NULL" * 5000, "more than 100 tests of what a test has given"),
        ("a" + " CONTAINS 'x'" * 3000, "more than 100 tests of what a test has given"),
        ("NOT " * 101 + "a = 1", "more than 100 levels"),
    ],
)
def test_an_expression_that_costs_too_much_is_refused_by_its_reason(expression: str, reason: str) -> None:
    with pytest.raises(SqlTooLarge, match=reason) as refused:
        compile_filter(expression)
    assert len(str(refused.value)) < 600


def test_the_deepest_expression_that_is_read_can_be_asked_as_well() -> None:
    inside = "(" * 49 + "a = 1 AND a = 1 OR a = 1" + ") = (a = 1 AND NOT (a <> 1))" * 49
    assert compile_filter(inside).matches({"a": "1"}) is True
    assert compile_filter("a" + " IS NULL" * 101).matches({"a": "1"}) is False


def test_read_filters_are_kept_by_their_bytes() -> None:
    cache = FilterCache(max_bytes=1_000_000)
    small = cache.keep(compile_filter("a = 1"))
    for number in range(100):
        cache.keep(compile_filter(f"b = {number} OR " * 100 + "a = 1"))
        assert cache.get("a = 1") is small  # asked for all the time
        assert cache.bytes <= 1_000_000
    assert cache.get("b = 0 OR " * 100 + "a = 1") is None
    assert cache.get("b = 99 OR " * 100 + "a = 1") is not None
    huge = compile_filter("c = 1 OR " * 1000 + "c = 1")
    assert cache.keep(huge) is huge
