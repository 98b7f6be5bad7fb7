"""The functions of SPARQL 1.1, 17.4.2 to 17.4.6 and the casts of 17.5, value and error."""

from typing import Any

import pytest
from shorthand import call, column, expected, of_columns, of_constants, scope, split, term

from levada.core.expressions import Const, Var
from levada.core.expressions import Function as Fn
from levada.core.rdf_terms import XSD, Iri
from levada.operators.expressions import evaluate

D = '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime'
Z = '"2011-01-10T14:45:13Z"^^xsd:dateTime'
LOCAL = '"2011-01-10T14:45:13"^^xsd:dateTime'
TERMS = [
    (Fn.STR, "<http://a>", '"http://a"'),
    (Fn.STR, '"a"@en', '"a"'),
    (Fn.STR, '"01"^^xsd:integer', '"01"'),
    (Fn.STR, "_:a", "-"),
    (Fn.LANG, '"a"@en-us', '"en-us"'),
    (Fn.LANG, '"a"', '""'),
    (Fn.LANG, "1", '""'),
    (Fn.LANG, "<http://a>", "-"),
    (Fn.DATATYPE, '"a"', f"<{XSD}string>"),
    (Fn.DATATYPE, '"a"@en', "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"),
    (Fn.DATATYPE, '"1"^^xsd:byte', f"<{XSD}byte>"),
    (Fn.DATATYPE, "_:a", "-"),
    (Fn.IRI, "<http://a>", "<http://a>"),
    (Fn.IRI, '"http://x/é"', "<http://x/é>"),
    (Fn.IRI, '"urn:x"', "<urn:x>"),
    (Fn.IRI, '"relative"', "-"),
    (Fn.IRI, '"http://x/a b"', "-"),
    (Fn.IRI, '"http://a"@en', "-"),
    (Fn.IRI, "1", "-"),
    (Fn.IRI, '"mp3" <http://base/x/y>', "<http://base/x/mp3>"),
    (Fn.IRI, '"" <http://base/x/y?q#f>', "<http://base/x/y?q>"),
    (Fn.IRI, '"../z" <http://base/x/y>', "<http://base/z>"),
    (Fn.IRI, '"/z/./w/.." <http://base/x/y>', "<http://base/z/>"),
    (Fn.IRI, '"//h/p" <http://base/x/y>', "<http://h/p>"),
    (Fn.IRI, '"?q" <http://base/x/y>', "<http://base/x/y?q>"),
    (Fn.IRI, '"#f" <http://base/x/y>', "<http://base/x/y#f>"),
    (Fn.STRDT, '"1" <http://u>', '"1"^^<http://u>'),
    (Fn.STRDT, f'"1" <{XSD}integer>', "1"),
    (Fn.STRDT, '"a"@en <http://u>', "-"),
    (Fn.STRDT, "1 <http://u>", "-"),
    (Fn.STRDT, '"a" "b"', "-"),
    (Fn.STRLANG, '"a" "EN-us"', '"a"@en-us'),
    (Fn.STRLANG, '"a" ""', "-"),
    (Fn.STRLANG, '"a" "e n"', "-"),
    (Fn.STRLANG, '"a"@en "fr"', "-"),
    (Fn.STRLANG, '"a" <http://a>', "-"),
    (Fn.IS_IRI, "<http://a>", "true"),
    (Fn.IS_IRI, '"a"', "false"),
    (Fn.IS_IRI, "-", "-"),
    (Fn.IS_BLANK, "_:a", "true"),
    (Fn.IS_LITERAL, '"a"@en', "true"),
    (Fn.IS_LITERAL, '"a"^^<http://u>', "true"),
    (Fn.IS_LITERAL, "_:a", "false"),
    (Fn.IS_NUMERIC, '"1"^^xsd:byte', "true"),
    (Fn.IS_NUMERIC, '"1200"^^xsd:byte', "false"),
    (Fn.IS_NUMERIC, '"x"^^xsd:integer', "false"),
    (Fn.IS_NUMERIC, "123456789012345678901", "true"),
    (Fn.IS_NUMERIC, '"NaN"^^xsd:float', "true"),
    (Fn.IS_NUMERIC, "true", "false"),
    (Fn.SAME_TERM, "1 1", "true"),
    (Fn.SAME_TERM, "1 1.0", "false"),
    (Fn.SAME_TERM, '"NaN"^^xsd:double "NaN"^^xsd:double', "true"),
    (Fn.SAME_TERM, "1 -", "-"),
]
STRINGS = [
    (Fn.STRLEN, '"aé\U00010348"', "3"),
    (Fn.STRLEN, '"a\\nb"@en', "3"),
    (Fn.STRLEN, "1", "-"),
    (Fn.SUBSTR, '"foobar" 4', '"bar"'),
    (Fn.SUBSTR, '"foobar"@en 4 1', '"b"@en'),
    (Fn.SUBSTR, '"foobar" 0 3', '"fo"'),
    (Fn.SUBSTR, '"foobar" -5 3', '""'),
    (Fn.SUBSTR, '"foobar" 10', '""'),
    (Fn.SUBSTR, '"foobar" 2 -1', '""'),
    (Fn.SUBSTR, '"foobar" "2"^^xsd:byte 100', '"oobar"'),
    (Fn.SUBSTR, '"foobar" 1.5', "-"),
    (Fn.SUBSTR, "12 1", "-"),
    (Fn.UCASE, '"straße"@de', '"STRASSE"@de'),
    (Fn.LCASE, '"ÀΣ"', '"àς"'),
    (Fn.UCASE, "1", "-"),
    (Fn.STRSTARTS, '"foobar" "foo"', "true"),
    (Fn.STRSTARTS, '"foobar"@en "foo"', "true"),
    (Fn.STRSTARTS, '"foobar"@en "foo"@en', "true"),
    (Fn.STRSTARTS, '"foobar"@en "foo"@fr', "-"),
    (Fn.STRSTARTS, '"foobar" "foo"@en', "-"),
    (Fn.STRENDS, '"foobar"@en "bar"', "true"),
    (Fn.STRENDS, '"foobar" "foo"', "false"),
    (Fn.CONTAINS, '"foobar" "oba"', "true"),
    (Fn.CONTAINS, '"foobar" "oba"@en', "-"),
    (Fn.STRBEFORE, '"abc"@en "bc"', '"a"@en'),
    (Fn.STRBEFORE, '"abc"@en "b"@cy', "-"),
    (Fn.STRBEFORE, '"abc"@en ""@en', '""@en'),
    (Fn.STRBEFORE, '"abc"@en "z"@en', '""'),
    (Fn.STRBEFORE, '"abcbd" "b"', '"a"'),
    (Fn.STRAFTER, '"abc"@en "ab"', '"c"@en'),
    (Fn.STRAFTER, '"abc"@en ""', '"abc"@en'),
    (Fn.STRAFTER, '"abc"@en "z"', '""'),
    (Fn.STRAFTER, '"abcbd" "b"', '"cbd"'),
    (Fn.ENCODE_FOR_URI, '"Los Angeles"@en', '"Los%20Angeles"'),
    (Fn.ENCODE_FOR_URI, '"~a-b_c.d*é/?"', '"~a-b_c.d%2A%C3%A9%2F%3F"'),
    (Fn.CONCAT, '"a" "b"', '"ab"'),
    (Fn.CONCAT, '"a"@en "b"@en', '"ab"@en'),
    (Fn.CONCAT, '"a"@en "b"', '"ab"'),
    (Fn.CONCAT, '"a"@en "b"@fr', '"ab"'),
    (Fn.CONCAT, '"a" 1', "-"),
    (Fn.CONCAT, '"a"@en', '"a"@en'),
    (Fn.LANGMATCHES, '"en-gb" "EN"', "true"),
    (Fn.LANGMATCHES, '"eng" "en"', "false"),
    (Fn.LANGMATCHES, '"" "*"', "false"),
    (Fn.LANGMATCHES, '"fr" "*"', "true"),
    (Fn.LANGMATCHES, '"de-latn-de" "de-de"', "false"),
    (Fn.LANGMATCHES, '"en"@en "en"', "-"),
    (Fn.MD5, '"abc"', '"900150983cd24fb0d6963f7d28e17f72"'),
    (Fn.SHA1, '"é"', '"bf15be717ac1b080b4f1c456692825891ff5073d"'),
    (Fn.SHA256, '"abc"', '"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"'),
    (Fn.MD5, '"abc"@en', "-"),
    (Fn.SHA512, "1", "-"),
]
REGEXES = [
    ('"abc" "^A" "i"', "true"),
    ('"abc"@en "b"', "true"),
    ('"abc" "b"@en', "-"),
    ('1 "1"', "-"),
    ('"abc" "("', "-"),
    ('"abc" "b" "k"', "-"),
    ('"a\\nb" "a.b"', "false"),
    ('"a\\nb" "a.b" "s"', "true"),
    ('"a\\rb" "a.b"', "false"),
    ('"a\\nb" "^b"', "false"),
    ('"a\\nb" "^b$" "m"', "true"),
    ('"a\\n" "a$"', "false"),
    ('"ab" "a b" "x"', "true"),
    ('"a b" "a[ ]b" "x"', "true"),
    ('"a.b" "a.b" "q"', "true"),
    ('"acb" "a.b" "q"', "false"),
    ('"A.B" "a.b" "iq"', "true"),
    ('"dc" "[a-z-[c]]c"', "true"),
    ('"cc" "^[a-z-[c]]c"', "false"),
    ('"é" "\\\\p{L}"', "true"),
    ('"a" "\\\\p{IsBasicLatin}"', "true"),
    ('"aa" "(a)\\\\1"', "true"),
    ('"ab" "(a)\\\\1"', "false"),
    ('"a1" "^\\\\i\\\\c$"', "true"),
    ('"a" "(?i)A"', "-"),
    ('"a*b" "a\\\\*b"', "true"),
    ('"x" "a++"', "-"),
]
REPLACEMENTS = [
    ('"abcd" "b" "Z"', '"aZcd"'),
    ('"abab"@en "B" "Z" "i"', '"aZaZ"@en'),
    ('"abcd" "(b)(c)" "$2$1"', '"acbd"'),
    ('"abcd" "(b)(c)" "[$0]"', '"a[bc]d"'),
    ('"abcd" "(b)(c)" "$12"', '"ab2d"'),
    ('"abcd" "(b)(c)" "$3"', '"ad"'),
    ('"abcd" "(b)|(x)" "<$2>"', '"a<>cd"'),
    ('"abcd" "b" "\\\\$"', '"a$cd"'),
    ('"abcd" "b" "\\\\\\\\"', '"a\\\\cd"'),
    ('"abcd" "b" "$"', "-"),
    ('"abcd" "b" "\\\\x"', "-"),
    ('"abcd" "x*" "-"', "-"),
    ('"a.b" "." "$0" "q"', '"a$0b"'),
    ('"abcd" "b" "-"@en', "-"),
    ('1 "b" "c"', "-"),
]
TIMES = [
    (Fn.YEAR, D, "2011"),
    (Fn.MONTH, D, "1"),
    (Fn.DAY, D, "10"),
    (Fn.HOURS, D, "14"),
    (Fn.MINUTES, D, "45"),
    (Fn.SECONDS, D, "13.815"),
    (Fn.SECONDS, Z, '"13"^^xsd:decimal'),
    (Fn.TIMEZONE, D, '"-PT5H"^^xsd:dayTimeDuration'),
    (Fn.TIMEZONE, Z, '"PT0S"^^xsd:dayTimeDuration'),
    (Fn.TIMEZONE, LOCAL, "-"),
    (Fn.TZ, D, '"-05:00"'),
    (Fn.TZ, Z, '"Z"'),
    (Fn.TZ, LOCAL, '""'),
    (Fn.YEAR, '"-0044-03-15T00:00:00Z"^^xsd:dateTime', "-44"),
    (Fn.YEAR, '"2021-02-29T00:00:00Z"^^xsd:dateTime', "-"),
    (Fn.DAY, '"2020-02-29T24:00:00Z"^^xsd:dateTime', "1"),
    (Fn.YEAR, '"2020-05-06"^^xsd:date', "2020"),
    (Fn.HOURS, '"2020-05-06"^^xsd:date', "-"),
    (Fn.HOURS, '"07:08:09"^^xsd:time', "7"),
    (Fn.MONTH, '"--05"^^xsd:gMonth', "5"),
    (Fn.YEAR, '"2020"', "-"),
    (Fn.SUBTRACT, f"{Z} {Z}", '"PT0S"^^xsd:dayTimeDuration'),
    (Fn.SUBTRACT, f"{D} {Z}", '"PT5H0.815S"^^xsd:dayTimeDuration'),
    (Fn.SUBTRACT, f"{LOCAL} {Z}", "-"),
    (Fn.ADD, f"{Z} {Z}", "-"),
    (Fn.ADD, f'{Z} "PT1H"^^xsd:dayTimeDuration', '"2011-01-10T15:45:13Z"^^xsd:dateTime'),
    (Fn.ADD, '"2020-01-31"^^xsd:date "P1M"^^xsd:yearMonthDuration', '"2020-02-29"^^xsd:date'),
    (Fn.SUBTRACT, '"2020-01-01"^^xsd:date "P1D"^^xsd:dayTimeDuration', '"2019-12-31"^^xsd:date'),
    (Fn.SUBTRACT, '"00:30:00"^^xsd:time "PT1H"^^xsd:dayTimeDuration', '"23:30:00"^^xsd:time'),
    (Fn.ADD, '"P1Y"^^xsd:yearMonthDuration "PT1H"^^xsd:dayTimeDuration', '"P1YT1H"^^xsd:duration'),
    (Fn.SUBTRACT, '"P1Y"^^xsd:yearMonthDuration "PT1H"^^xsd:dayTimeDuration', "-"),
    (Fn.ADD, '"P1D"^^xsd:dayTimeDuration 1', "-"),
    (Fn.MULTIPLY, '"P1D"^^xsd:dayTimeDuration 2', "-"),
]
CASTS = [
    ("integer", '"13"', "13"),
    ("integer", '" +05 "', "5"),
    ("integer", '"1.5"', "-"),
    ("integer", '"1"@en', "-"),
    ("integer", "-3.7", "-3"),
    ("integer", "1.9e0", "1"),
    ("integer", '"INF"^^xsd:double', "-"),
    ("integer", "1e30", "1000000000000000019884624838656"),
    ("integer", "true", "1"),
    ("integer", "<http://a>", "-"),
    ("integer", '"1"^^<http://u>', "-"),
    ("decimal", '"+33.3300"', "33.33"),
    ("decimal", '"1e0"', "-"),
    ("decimal", "0.1e0", "0.1"),
    ("decimal", "1e-20", '"0"^^xsd:decimal'),
    ("decimal", "1e30", '"1000000000000000019884624838656"^^xsd:decimal'),
    ("decimal", "false", '"0"^^xsd:decimal'),
    ("double", '"-10.2E3"', '"-10200"^^xsd:double'),
    ("double", '"infinity"', "-"),
    ("double", "1.5", '"1.5"^^xsd:double'),
    ("double", '"0.1"^^xsd:float', '"0.10000000149011612"^^xsd:double'),
    ("float", "0.1e0", '"0.1"^^xsd:float'),
    ("float", "1e40", '"INF"^^xsd:float'),
    ("float", "123456789", '"123456790"^^xsd:float'),
    ("boolean", '"1"', "true"),
    ("boolean", '"TRUE"', "-"),
    ("boolean", "0.0", "false"),
    ("boolean", '"NaN"^^xsd:double', "false"),
    ("boolean", "2e0", "true"),
    ("string", "<http://a>", '"http://a"'),
    ("string", "1.0", '"1"'),
    ("string", "0E1", '"0"'),
    ("string", "1e6", '"1.0E6"'),
    ("string", "1.25e-7", '"1.25E-7"'),
    ("string", '"0"^^xsd:boolean', '"false"'),
    ("string", '"a"@en', '"a"'),
    ("string", "_:a", "-"),
    ("dateTime", '"2002-10-10T17:00:00Z"', '"2002-10-10T17:00:00Z"^^xsd:dateTime'),
    ("dateTime", '"2002-13-10T17:00:00Z"', "-"),
    ("dateTime", '"2002-10-10"^^xsd:date', '"2002-10-10T00:00:00"^^xsd:dateTime'),
    ("dateTime", "1", "-"),
    ("date", Z, '"2011-01-10Z"^^xsd:date'),
    ("time", D, '"14:45:13.815-05:00"^^xsd:time'),
    ("gYearMonth", Z, '"2011-01Z"^^xsd:gYearMonth'),
    ("time", '"2002-10-10"^^xsd:date', "-"),
    ("duration", '"-P1Y14M40DT30H61M61.50S"', '"-P2Y2M41DT7H2M1.5S"^^xsd:duration'),
    ("dayTimeDuration", '"P1YT1H"^^xsd:duration', '"PT1H"^^xsd:dayTimeDuration'),
    ("yearMonthDuration", '"P1D"', "-"),
    ("byte", '"1"', "-"),
]


@pytest.mark.parametrize(("function", "args", "result"), [*TERMS, *STRINGS, *TIMES])
def test_function(function: Any, args: Any, result: Any) -> None:
    assert of_constants(function, *split(args)) == expected(result)
    assert of_columns(function, *split(args)) == expected(result)


@pytest.mark.parametrize(("args", "result"), REGEXES)
def test_regex(args: Any, result: Any) -> None:
    assert of_columns(Fn.REGEX, *split(args)) == expected(result)


@pytest.mark.parametrize(("args", "result"), REPLACEMENTS)
def test_replace(args: Any, result: Any) -> None:
    assert of_columns(Fn.REPLACE, *split(args)) == expected(result)


@pytest.mark.parametrize(("target", "arg", "result"), CASTS)
def test_cast(target: Any, arg: Any, result: Any) -> None:
    expression = call(Fn.CAST, Const(Iri(XSD + target)), Var("v"))
    assert (
        evaluate(expression, scope(2, v=column(arg, arg))).texts().to_list()
        == [expected(result)] * 2
    )


def test_a_function_without_arguments_and_the_report_time() -> None:
    assert of_constants(Fn.CONCAT) == '""'
    assert of_constants(Fn.NOW) == str(term('"1970-01-01T00:00:01Z"^^xsd:dateTime'))
