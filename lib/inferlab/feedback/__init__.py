"""The checker that exercises and chapters call, alone and in the batch grader.

from inferlab.feedback import Exercise
check = Exercise("3-roofline").check
check("ridge_point", ridge_point)
"""

from inferlab.feedback.exercise import Exercise

__all__ = ["Exercise"]
