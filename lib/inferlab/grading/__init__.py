"""Writing exercises, releasing them and grading a class; needs the extra `inferlab[grading]`."""
