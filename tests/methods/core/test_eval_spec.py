"""Specs of evaluations."""

from __future__ import annotations

from methods.core import eval_spec


def test_the_form_of_a_spec_is_kept():
    """A spec is written as it was read: results that exist are compared with it as text."""
    texts = (
        '{"attack":"standard","block":250,"eps":"8/255","examples":"all","norm":"Linf","seed":0}',
        '{"attack":"clean","block":250,"eps":0,"examples":3,"norm":"L2","seed":1}',
        '{"attack":{"step":0.1,"steps":10,"version":"pgd"},"block":1,"eps":0.5,"examples":3,"norm":"Linf","seed":1}',
        '{"attack":{"apgd_iter":3,"attacks":["fab","square"],"fab_iter":100,"restarts":1,"square_queries":5000,"targets":9,'
        '"version":"custom"},"block":1,"eps":0.5,"examples":3,"norm":"L2","seed":1}',
    )
    for line in texts:
        assert eval_spec.parse(line).canonical() == line
    assert eval_spec.parse({}).canonical() == texts[0]
    assert eval_spec.parse({"attack": {"attacks": ["fab"]}}).attack == eval_spec.Custom(attacks=("fab",))
    assert eval_spec.parse({"attack": {"version": "pgd", "steps": 10}}).to_json()["attack"] == "pgd"
