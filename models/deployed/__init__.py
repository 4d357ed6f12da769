"""Classifiers as they are deployed: functions from sentences to scores, whatever they are made of."""
