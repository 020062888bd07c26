"""The checker that exercises and chapters call, alone and in the batch grader.

    from inferlab.feedback import Exercise
    check = Exercise("3-roofline").check
    check("ridge", ridge)

says whether the learner's `ridge` is right, and if not, what to think about.
"""

from inferlab.feedback.exercise import Exercise

__all__ = ["Exercise"]
