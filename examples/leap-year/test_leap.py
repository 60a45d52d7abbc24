# SPDX-License-Identifier: Apache-2.0
import unittest

import leap


class Parse(unittest.TestCase):
	def test_leap_day(self):
		self.assertEqual(leap.parse('2024-02-29'), (2024, 2, 29))

	def test_every_fourth_century_has_a_leap_day(self):
		self.assertEqual(leap.parse('2000-02-29'), (2000, 2, 29))

	def test_other_years_have_none(self):
		for text in ('2023-02-29', '1900-02-29'):
			with self.assertRaises(ValueError):
				leap.parse(text)


if __name__ == '__main__':
	unittest.main()
