"""What an attacker gets to see. An attack takes one view and nothing else.

`kinds` has the views, whose fields are the threat model. Only `rounds` and
`trained` make views of the whole federation's state, so a leak of the simulator
to an attacker could only be there.
"""
from vfljax.views.kinds import (
    ClassCenters, CutGradients, KnownPositive, MaskedLayer, ModelGradients,
    RecordedGradients, TrainedBottom, TrainedTop, UnlabeledBottom, WhiteBox,
)
from vfljax.views.rounds import (
    OF_A_ROUND, class_centers, cut_gradients, in_training, known_positive,
    majority, model_gradients, own_gradients, own_weights, recorded_gradients,
    unknown, white_box,
)
from vfljax.views.trained import (
    OF_A_TRAINED_FEDERATION, OF_ONES_OWN, Finished, Own, after_training,
    trained_bottom, trained_top, unlabeled_bottom, wanted_features,
)

__all__ = [
    'ClassCenters', 'CutGradients', 'Finished', 'KnownPositive', 'MaskedLayer',
    'ModelGradients', 'OF_A_ROUND', 'OF_A_TRAINED_FEDERATION', 'OF_ONES_OWN',
    'Own', 'RecordedGradients', 'TrainedBottom', 'TrainedTop',
    'UnlabeledBottom', 'WhiteBox', 'after_training', 'class_centers',
    'cut_gradients', 'in_training', 'known_positive', 'majority',
    'model_gradients', 'own_gradients', 'own_weights', 'recorded_gradients',
    'trained_bottom', 'trained_top', 'unknown', 'unlabeled_bottom',
    'wanted_features', 'white_box',
]
