# SPDX-License-Identifier: Apache-2.0
"""Calendar helpers."""


def is_leap(year):
	return year % 4 == 0 and year % 100 != 0


def parse(text):
	"""(year, month, day) of a date like 2024-02-29; ValueError where there is no such day."""
	year, month, day = (int(part) for part in text.split('-'))
	days = [31, 29 if is_leap(year) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
	if not 1 <= month <= 12 or not 1 <= day <= days[month - 1]:
		raise ValueError(f'no such day: {text}')
	return year, month, day
