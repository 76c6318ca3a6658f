"""Alerts: rules, their evaluation, the senders of notices. The evaluation is pure: facts and time in, changes out."""
