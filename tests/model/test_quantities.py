"""Numbers and amounts as people write them."""

import pytest

import evenkeel as ek
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.reading.quantities import read_bytes, read_number

ONE_WAY = {
    "7": 7.0, "7.5": 7.5, ".5": 0.5, "7,5": 7.5, "10,25": 10.25, "0,125": 0.125,
    "1234,567": 1234.567,
    "1.234,5": 1234.5, "1,234.5": 1234.5, "1.234.567": 1234567.0, "1,234,567": 1234567.0,
    "1'000": 1000.0, "1 000,5": 1000.5, "1\u202f000": 1000.0, "0.125": 0.125,
    "1234.567": 1234.567,
}  # fmt: skip


@pytest.mark.parametrize("text", ONE_WAY)
def test_a_number_with_one_reading_is_read(text):
    assert read_number(text) == ONE_WAY[text]
    assert read_bytes(FaultList(), "limit", f"{text} kB") == ONE_WAY[text] * 1000.0


@pytest.mark.parametrize(
    "text", ["", ".", ",", "1,", "1.2.3", "1,2,3", "1,23.4", "1.000.0", "x", "-1"]
)
def test_other_texts_are_no_numbers(text):
    assert read_number(text) is None


def test_the_decimal_mark_of_others_decides():
    assert (read_number("1.500", ","), read_number("1.500", "."), read_number("1.500")) == (
        1500.0, 1.5, 1.5,
    )  # fmt: skip
    assert (read_number("1,500", ","), read_number("1,500", "."), read_number("1,500")) == (
        1.5, 1500.0, None,
    )  # fmt: skip


def test_an_amount_with_two_readings_is_refused_with_both():
    with pytest.raises(InvalidInput, match=r"may be 1\.5 or 1500"):
        ek.Limits(bytes="1,500 GB")
    assert ek.Limits(bytes="10,5mb").bytes == 10.5e6
