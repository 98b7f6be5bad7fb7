"""A word in double quotes in CQL: a name where a column or table of that name is in scope, else an
error that says what to write; a text in STREAM's scripts.
"""

import pytest

from levada.core.expressions import Call, Const, Expression, Var
from levada.errors import QuerySyntaxError, UnknownNameError
from levada.language.cql.ast import show, show_name, show_script
from levada.language.cql.parser import _parser, parse_cql, parse_script
from levada.language.dialects.cql import RESERVED
from levada.language.dialects.detect import recognise
from levada.language.translate.cql.translate import translate_cql
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import level

STREAMS = {
    "L": {"sensor id": "string", "CO(GT)": "double", "order": "integer", 'a"b': "integer"},
    "weather data": {"sensor id": "string", "t": "double"},
    "A.k": {"x": "integer"},
    "A": {"k.x": "integer", "x": "integer"},
}


def operands(text: str, dialect: str = "cql") -> list[Expression]:
    """The operands of the filter of a query."""
    query = translate_cql(text, STREAMS, dialect=dialect)
    (node,) = (node for node in level(query.pattern) if isinstance(node, a.Filter))
    assert isinstance(node.condition, Call)
    return list(node.condition.args)


def variables(text: str) -> tuple[str, ...]:
    return translate_cql(text, STREAMS).variables


def test_a_quoted_word_names_a_column_with_any_characters() -> None:
    text = 'Select "sensor id", "CO(GT)" * 2 As "twice CO", "order", "a""b" From L [Now]'
    assert variables(text) == ("sensor id", "twice CO", "order", 'a"b')


def test_a_quoted_word_names_a_table_and_an_alias() -> None:
    text = (
        'Select "l 1"."sensor id", W.t From L [Now] As "l 1", "weather data" [Rows 1] As W '
        'Where "l 1"."sensor id" = W."sensor id" And "CO(GT)" > 2'
    )
    assert variables(text) == ("sensor id", "t")
    assert variables('Select "weather data".* From "weather data"') == ("sensor id", "t")
    assert recognise('Select k From "weather data" [Now]').name == "cql"


def test_a_quoted_word_is_a_key_and_a_group() -> None:
    text = (
        'Select "sensor id", Count(*) As "how many" From L [Partition By "sensor id" Rows 2] '
        'Group By "sensor id" Having Max("CO(GT)") > 1'
    )
    assert variables(text) == ("sensor id", "how many")


def test_a_view_has_quoted_names() -> None:
    text = (
        'Register Relation "my view" ("how many" Integer) As Select Count(*) From L [Now]; '
        'Select "how many" From "my view"'
    )
    assert variables(text) == ("how many",)


def test_a_text_in_single_quotes_is_a_text_and_in_double_quotes_a_name() -> None:
    left, right = operands("Select * From L Where \"sensor id\" = 'sensor id'")
    assert isinstance(left, Var) and isinstance(right, Const)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        (
            'Select * From L Where "sensor id" = "S 1"',
            'There is no column "S 1": double quotes are for names',
            "For a text write 'S 1', or say --dialect stream",
        ),
        ('Select "sensor-id" From L', 'no column "sensor-id"', 'Did you mean "sensor id"?'),
        ('Select * From L Where "sensor id" = "it\'s"', "it's", "write 'it''s'"),
        ('Select "" From L', 'no column ""', "write ''"),
        ("Select sensor From L", "no column sensor", 'Write "sensor id".'),
        ("Select k From wether", "no tuple stream wether", '"weather data"'),
        ('Select "A"."y" From A', "A has no column y", ""),
    ],
)
def test_an_unknown_quoted_word_says_what_to_write(text: str, says: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        translate_cql(text, STREAMS)
    assert says in error.value.message or says in str(error.value)
    assert hint in error.value.hint


def test_a_column_that_begins_with_a_dot_is_refused() -> None:
    for text in ('Select x As ".a0" From A', 'Select ".c0" From A', 'Select A.".g0" From A'):
        with pytest.raises(QuerySyntaxError, match="cannot begin with a dot"):
            translate_cql(text, STREAMS)


def test_an_open_quote_is_named() -> None:
    with pytest.raises(QuerySyntaxError, match="name in quotes is not closed"):
        parse_cql('Select "k From A')
    with pytest.raises(QuerySyntaxError, match="string is not closed"):
        parse_cql("Select * From A Where k = 'x")


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('Select * From L Where "order" = "order"', "stream"),
        ('query : Select * From L Where "order" = "order";', "cql"),
    ],
)
def test_streams_spelling_has_texts_in_double_quotes(text: str, dialect: str) -> None:
    assert all(isinstance(operand, Const) for operand in operands(text, dialect))


def test_a_label_anywhere_in_a_script_makes_it_one_of_stream() -> None:
    text = (
        'table : Register Stream L2 (k Integer); Select "S 1" From "L2" [Partition By "k" Rows 1];'
    )
    query = parse_script(text).queries[0].query
    assert show(query) == "Select 'S 1'\nFrom L2 [Partition By k Rows 1]"


def test_two_columns_never_share_a_variable() -> None:
    """``A."k.x"`` and ``"A.k".x`` would both be ``A.k.x``, and equal variables join."""
    query = translate_cql('Select Count(*) As n From A [Now], "A.k" [Now] Where "k.x" > "A.k".x',
                          STREAMS)  # fmt: skip
    scans = [node for node in level(query.pattern) if isinstance(node, a.Scan)]
    named = [variable for scan in scans for _, variable in scan.columns]
    assert len(named) == len(set(named)) == 2
    assert variables('Select k.x As "A.x" From A As k, A') == ("A.x",)


@pytest.mark.parametrize(
    "text",
    [
        'Select "sensor id" As "a b", "A"."x" From "weather data" [Now] As "w d", A\n'
        'Where ("sensor id" = \'S "1"\')\nGroup By "order"',
        'Select *\nFrom "select"',
    ],
)
def test_the_shown_form_parses_to_an_equal_tree(text: str) -> None:
    tree = parse_cql(text)
    assert parse_cql(show(tree)) == tree


def test_the_shown_script_parses_to_an_equal_script() -> None:
    text = (
        'Register Stream "my view" ("a b" Integer) As Select x From A; Select "a b" From "my view"'
    )
    script = parse_script(text)
    assert parse_script(show_script(script)) == script


def test_the_reserved_words_are_those_of_the_grammar() -> None:
    pattern = next(t for t in _parser().terminals if t.name == "NAME").pattern.value
    words = pattern.partition("(?!(?:")[2].partition(")")[0]
    assert set(words.split("|")) == RESERVED
    assert all(show_name(word) == f'"{word}"' for word in RESERVED)
