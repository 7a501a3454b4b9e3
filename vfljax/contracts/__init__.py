"""Contract checks for defenses and attacks of your own.

  contracts.check_defense(my_defense, 0.1)  # ValueError with what is wrong
  contracts.check_attack(my_attack())

Both try the method in a small federation of two parties and two classes, a
defense also in one of three parties, and take some seconds. They are the larger
part of the contract tests of vfljax's own methods: shapes, what crosses between
parties, padding, the order of samples and of passive parties, keys and luck.
They do not check whether a formula is right.
"""
from vfljax.contracts.of_attacks import check_attack
from vfljax.contracts.of_defenses import check_defense

__all__ = ['check_attack', 'check_defense']
