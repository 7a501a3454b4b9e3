"""What every defense and every attack keeps to: to be asked of one's own.

  contracts.check_defense(my_defense, 0.1)  # ValueError with what is wrong
  contracts.check_attack(my_attack())

Both try it in a small federation of two parties and two classes and take some
seconds. It is the larger part of what vfljax's own tests ask of all that is
registered, and says nothing of whether a formula is right.
"""
from vfljax.contracts.of_attacks import check_attack
from vfljax.contracts.of_defenses import check_defense

__all__ = ['check_attack', 'check_defense']
