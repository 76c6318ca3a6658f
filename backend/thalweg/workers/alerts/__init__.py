"""Alerts in the elected collector: reads facts, evaluates the rules, writes what has changed, delivers notices."""
