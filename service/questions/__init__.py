"""What each call beside the trace answers: the work of one worker thread, a module a call."""
