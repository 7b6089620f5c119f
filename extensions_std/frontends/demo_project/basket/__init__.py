"""Adds up what is in a shopping basket."""
