"""Exact derivatives, in reverse: a vector-Jacobian product beside each operation of the equations.

steps        a Step: a stage, the stages it is computed from, and its pull
operations   the pulls as pure functions; `slopes` has f' of each activation
norms, attention, ffn, block, model
             the Steps of a config, written as the equations are
routes       the Steps between some stages and a later one; `rows`: which rows of them matter
pulling      walks Steps backwards: the cotangent of every earlier stage
jacobian     d(state at a position)/d(state at another), the identity's part apart
gradients    of a number with respect to stages, and activation · gradient
asking       what a request may ask for; `price`: what it costs
"""
