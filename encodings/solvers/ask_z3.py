"""A formula put to Z3: exact rationals from end to end."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..formulas.formula import Formula, Linear
from .solver_answer import Clock, Found, Limits


def ask_z3(problem: Formula, limits: Limits, clock: Clock) -> Found:
    import z3

    context = z3.Context()
    solver: Any = z3.Optimize(ctx=context) if problem.fewest else z3.SolverFor("QF_LRA", ctx=context)
    # Z3 takes milliseconds, of 32 bits; memory in megabytes, and fails when it is used up.
    solver.set("timeout", int(min(limits.seconds * 1000, 2**31)))

    def number(value: Fraction) -> Any:
        return z3.RealVal(f"{value.numerator}/{value.denominator}", context)

    made = [z3.Bool(f"swap[{position},{token}]", context) for position, token in problem.swaps]
    outputs = [z3.Real(unit.name, context) for unit in problem.units]
    place_of = {member: place for place, members in problem.positions.items() for member in members}

    def part(name: str, place: int, factors: dict[int, Fraction]) -> Any:
        """What the word at one position adds: a variable that takes the value of whichever swap is made there, or 0.

        Z3 then adds up variables, and never pivots on the network's weights: those have so many digits that it took
        a hundred times longer where the rows held weight * (1 if the swap is made else 0).
        """
        members = problem.positions[place]
        variable = z3.Real(f"{name}.{place}", context)
        worth = {member: factors.get(member, Fraction(0)) for member in members}
        for member, value in worth.items():
            solver.add(z3.Implies(made[member], variable == number(value)))
        solver.add(z3.Or(*(made[member] for member in members), variable == number(Fraction(0))))
        ends = (Fraction(0), *worth.values())
        solver.add(variable >= number(min(ends)), variable <= number(max(ends)))
        return variable

    def sum_of(name: str, linear: Linear) -> Any:
        terms: list[Any] = [number(linear.constant)]
        words: dict[int, dict[int, Fraction]] = {}
        for term, factor in linear.terms:
            if term < len(made):
                words.setdefault(place_of[term], {})[term] = factor
            else:
                terms.append(number(factor) * outputs[term - len(made)])
        return z3.Sum([*terms, *(part(name, place, factors) for place, factors in words.items())])

    for members in problem.positions.values():
        if len(members) > 1:
            solver.add(z3.AtMost(*(made[member] for member in members), 1))
    if problem.k < len(problem.positions):
        solver.add(z3.AtMost(*made, problem.k))
    for unit, output in zip(problem.units, outputs, strict=True):
        inputs = [z3.Real(f"{unit.name}.{i}", context) for i in range(len(unit.inputs))]
        for i, (variable, linear) in enumerate(zip(inputs, unit.inputs, strict=True)):
            solver.add(variable == sum_of(f"{unit.name}.{i}", linear), output >= variable)
        solver.add(z3.Or([output <= variable for variable in inputs]))
    wins = []
    for i, margin in enumerate(problem.margins):
        value = sum_of(f"margin.{i}", margin.value)
        wins.append(value <= 0 if margin.wins_ties else value < 0)
    solver.add(z3.Or(wins))
    if problem.fewest:
        one, zero = z3.IntVal(1, context), z3.IntVal(0, context)
        solver.minimize(z3.Sum([zero, *(z3.If(swap, one, zero) for swap in made)]))
    answer = clock.run(solver.check)
    if answer == z3.unsat:
        return Found("infeasible")
    if answer == z3.sat:
        model = solver.model()
        chosen = {place for place, one in enumerate(made) if z3.is_true(model.eval(one, model_completion=True))}
        return Found("optimal", objective=float(len(chosen)), solution=problem.solution(chosen))
    reason = str(solver.reason_unknown())
    if "memory" in reason:
        return Found("memory", detail=reason)
    out_of_time = "timeout" in reason or "canceled" in reason
    return Found("time" if out_of_time else "error", detail=reason)
