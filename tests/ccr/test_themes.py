"""What every theme owes its readers, asked of all themes that are found."""

import re
from pathlib import Path

import pytest

from lib.ccr import generate
from lib.ccr.agreement import disagreements
from lib.ccr.stories import WORDINGS
from lib.ccr.theme import Draw, themes
from lib.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
THEMES = pytest.mark.parametrize("theme", themes().values(), ids=list(themes()))


def nodes_of(theme, n=60, seed=0):
    return theme.nodes(n, Draw(seed, "a story of a test"))


def sentences_of(node):
    return [*node.when_true, *node.when_false, *node.asides]


def golden(theme):
    """Return what the golden file of a theme holds: one prompt of every wording."""
    tasks = generate(theme, [3, 2], n_tasks=3, n_samples=1, seed=7, n_wordings=3)
    prompts = []
    for task in tasks.tasks:
        factual, *_, interventional = task.questions["text"]
        context = f"{task.story.context}\n\n{task.samples[0]}"
        answers = [("No", "Yes")[int(labels[0])] for labels in task.labels[[0, -1]]]
        for question, answer in zip((factual, interventional), answers, strict=True):
            context += f"\n\n{question}\n→ {answer}"
        prompts.append(context)
    return "\n\n———\n\n".join(prompts) + "\n"


@pytest.mark.parametrize("name", ["candy_party", "clinical_notes", "flower_garden", "flu_vaccine"])
def test_prompts_are_the_golden_ones(name):
    """Their answers were checked by reading; whoever changes a word reads them again."""
    assert golden(name) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@THEMES
def test_the_reader_gives_every_label_in_every_wording(theme):
    told = {"bcc_types": "mixed", "n_tasks": 3, "n_samples": 12, "n_wordings": 3}
    for functions in (
        [theme.causal_functions] if theme.causal_functions else ["random", "and", "or"]
    ):
        tasks = generate(theme, [3, 4, 2], causal_functions=functions, **told)
        assert len(tasks) == 3 * 12 * (4 + 2 * 6)
        assert disagreements(tasks).empty


@THEMES
def test_the_reader_gives_the_labels_of_a_chain_of_more_than_100_nodes(theme):
    tasks = generate(theme, [5, 25, 60, 30, 2], bcc_types="wheel", n_samples=2, seed=4)
    assert len(tasks.contexts["nodes"][0]) == 118
    assert disagreements(tasks).empty


@THEMES
def test_a_theme_has_an_opening_for_each_wording(theme):
    assert len(set(theme.openings)) == len(theme.openings) == len(WORDINGS)
    for text in (*theme.openings, theme.closing):
        assert not re.search("if and only if|exactly when|It is the case", text)


@THEMES
def test_labels_clauses_and_conditions_are_all_different(theme):
    nodes = nodes_of(theme)
    for clauses in zip(
        *((n.label, n.true, n.false, n.own, n.question) for n in nodes), strict=True
    ):
        assert len(set(clauses)) == len(nodes)


@THEMES
def test_no_clause_holds_what_ends_one(theme):
    for node in nodes_of(theme):
        for clause in (node.label, node.true, node.false, node.own):
            assert not set(clause) & set(".;:()?")
        assert node.question.endswith("?")
        for sentence in sentences_of(node):
            assert sentence.endswith(".") and "." not in sentence[:-1]


@THEMES
def test_a_negated_clause_is_read_as_its_positive(theme):
    for node in nodes_of(theme):
        assert theme.affirmed(node.false, form=1) == node.true
        assert theme.affirmed(node.true, form=1) is None
        assert re.search(" not ", node.false) and not re.search(" not ", node.true)


@THEMES
def test_a_question_is_recognised_by_its_own_theme_only(theme):
    for node in nodes_of(theme):
        assert theme.affirmed(node.question, form=2) == node.true
        assert theme.affirmed("Is it raining?", form=2) is None
        for other in themes().values():
            assert other is theme or other.affirmed(node.question, form=2) is None


@THEMES
@pytest.mark.parametrize("seed", range(3))
def test_facts_are_told_apart_and_asides_tell_nothing(theme, seed):
    opening = theme.openings[seed]
    nodes = nodes_of(theme, seed=seed)
    for node in nodes:
        for sentence in node.when_true:
            assert theme.holds(node.own, f"{opening} {sentence}") is True
        for sentence in node.when_false:
            assert theme.holds(node.own, f"{opening} {sentence}") is False
        assert theme.holds(node.own, " ".join([opening, *node.asides])) is None


@THEMES
@pytest.mark.parametrize("seed", range(3))
def test_a_fact_that_is_told_twice_is_refused(theme, seed):
    opening = theme.openings[seed]
    for node in nodes_of(theme, n=12, seed=seed):
        for other in (node.when_true[0], node.when_false[0], node.when_true[-1]):
            with pytest.raises(InputError, match="told twice"):
                theme.holds(node.own, f"{opening} {node.when_true[-1]} {other}")


@THEMES
@pytest.mark.parametrize("seed", range(3))
def test_all_sentences_of_a_sample_are_known_and_nothing_else_is(theme, seed):
    def known(sentence):
        return any(re.fullmatch(pattern, sentence) for pattern in theme.sentences)

    for node in nodes_of(theme, seed=seed):
        assert all(known(sentence) for sentence in sentences_of(node))
        for clause in (node.true, node.false, node.own, node.question):
            assert not known(f"{clause}.")


@THEMES
@pytest.mark.parametrize("seed", range(3))
def test_no_sentence_about_one_node_is_taken_for_another(theme, seed):
    opening = theme.openings[seed]
    nodes = nodes_of(theme, seed=seed)
    for position, node in enumerate(nodes):
        others = nodes[:position] + nodes[position + 1 :]
        told = " ".join(sentence for other in others for sentence in sentences_of(other))
        assert theme.holds(node.own, f"{opening} {told}") is None


@THEMES
def test_numbers_agree_with_their_nouns_and_articles_with_theirs(theme):
    for seed in range(5):
        for node in nodes_of(theme, seed=seed):
            text = " ".join([node.own, *sentences_of(node)])
            assert not re.search(r"\b1 (candies|days|bottles|streets|times)\b", text)
            assert not re.search(r"(?<!\d)\b(0|[2-9]|1\d) (candy|day|bottle|street)\b", text)
            assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text)
            assert not re.search(r"\b(she|he|her|his|they|it)\b", text)
            assert "  " not in text and " ." not in text


def test_codes_of_a_patient_are_all_different():
    theme = themes()["clinical_notes"]
    nodes = nodes_of(theme, n=300)
    own = [node.own.split()[-1] for node in nodes[1:]]
    beside = [{aside.split()[-1].rstrip(".") for aside in node.asides} for node in nodes[1:]]
    assert all(len(codes) == 1 for codes in beside)
    markers = [node.label.split()[-1] for node in nodes if "marker" in node.label]
    everything = [*own, *(code for codes in beside for code in codes), *markers]
    assert len(set(everything)) == len(everything)
    kinds = {node.own.removeprefix("the patient ").rpartition(" ")[0] for node in nodes[1:]}
    assert kinds == set(theme.history)


def test_a_patient_is_operated_by_or_with_and_at_the_leaf():
    operators = generate("clinical_notes", [4, 3]).contexts["operators"][0]
    assert operators == ["or"] * 5 + ["and"]


def test_a_catalogue_that_tells_a_colour_twice_is_refused():
    theme = themes()["flower_garden"]
    wish = f"Ada's flowers bloom in a shade of {next(iter(theme.shades))}"
    with pytest.raises(InputError, match="each colour of the catalogue may be given only once"):
        theme.holds(wish, " ".join(theme.openings[:2]))
