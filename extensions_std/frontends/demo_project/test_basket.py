"""Tests of the basket."""

import unittest

from basket.prices import basket_total, line_total


class LineTotals(unittest.TestCase):
    """Prices of one thing."""

    def test_a_few_pieces_cost_their_price(self) -> None:
        self.assertEqual(line_total(250, 3), 750)

    def test_ten_pieces_are_already_cheaper(self) -> None:
        self.assertEqual(line_total(100, 10), 800)

    def test_more_pieces_are_cheaper_too(self) -> None:
        self.assertEqual(line_total(100, 20), 1600)


class BasketTotals(unittest.TestCase):
    """Prices of several things."""

    def test_a_basket_costs_what_its_lines_cost(self) -> None:
        self.assertEqual(basket_total([(250, 3), (100, 10)]), 1550)


if __name__ == "__main__":
    unittest.main()
