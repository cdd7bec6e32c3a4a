"""Small files of the formats of other tools, in the shapes that their own code writes; the texts are ours."""

from typing import Any

POLAND = "Warsaw is the capital of Poland."
RIVER = "The Vistula flows north."

ROWS: dict[str, list[dict[str, Any]]] = {
    "autojudge-reports": [
        {
            "metadata": {"team_id": "t", "run_id": "r", "narrative_id": "9", "narrative": "capital"},
            "references": ["p1", "p2"],
            "answer": [{"text": "It is Warsaw.", "citations": [1, 0]}],
            "documents": {
                "p1": {"id": "p1", "title": "Warsaw", "text": "Warsaw is the capital of Poland."},
                "p2": {"id": "p2", "title": None, "text": "The capital is Warsaw."},
            },
        }
    ],
    # ragnarok.data.DataWriter: no run id, the length in characters
    "ragnarok": [
        {
            "topic_id": "q1",
            "topic": "capital of poland",
            "references": ["d1", "d2"],
            "response_length": 25,
            "answer": [{"text": "It is Warsaw.", "citations": [0, 1]}, {"text": "It is large.", "citations": []}],
        }
    ],
    # castorini/nuggetizer, src/nuggetizer/cli/adapters.py: assignments to answers
    "nuggetizer": [
        {
            "query": "capital of poland",
            "qid": "q1",
            "answer_text": "It is Warsaw, a large city.",
            "response_length": 6,
            "run_id": "r",
            "nuggets": [
                {"text": "Warsaw is the capital of Poland", "importance": "vital", "assignment": "support"},
                {"text": "Warsaw has two million people", "importance": "okay", "assignment": "partial_support"},
                {"text": "Warsaw lies on the Vistula", "importance": "vital", "assignment": "not_support"},
            ],
        }
    ],
    "judgements": [
        {
            "id": "1",
            "sentence": 0,
            "text": "It is Warsaw.",
            "cites": ["a"],
            "verdict": "attributable",
            "probability": 0.9,
            "reason": None,
            "judge": "lexical@2/0.7/statement.v1",
            "alone": ["attributable"],
            "evidence": [{"passage": "a", "start": 0, "end": 32}],
            "unsupported": [[0, 2]],
            "scores": {"question": "capital?", "autoais": [1.0, 1.0]},
        },
        {
            "id": "2",
            "sentence": None,
            "text": "",
            "cites": [],
            "verdict": "not_attributable",
            "probability": None,
            "reason": "nothing was said",
            "judge": "lexical@2/0.7/statement.v1",
            "alone": [],
            "evidence": [],
            "unsupported": [],
        },
    ],
    # ragas.EvaluationDataset.to_jsonl: fields of value None are left out
    "ragas": [
        {
            "user_input": "What is the capital of Poland?",
            "retrieved_contexts": [POLAND, RIVER],
            "response": "It is Warsaw. It is on the Vistula.",
            "reference": "Warsaw",
            "reference_contexts": [POLAND],
        },
        {"user_input": "And its river?", "retrieved_contexts": [RIVER], "response": "The Vistula [1]. It is long [3]."},
    ],
    # datasets.Dataset.to_json of the columns that ragas.evaluate took until 0.1
    "ragas-0.1": [
        {
            "question": "What is the capital of Poland?",
            "answer": "It is Warsaw. It is on the Vistula.",
            "contexts": [POLAND, RIVER],
            "ground_truth": "Warsaw",
        },
        {"question": "And its river?", "answer": "The Vistula.", "contexts": [RIVER], "ground_truths": ["the Vistula"]},
    ],
    # ragchecker.RAGResult.to_dict, checked
    "ragchecker": [
        {
            "query_id": "000",
            "query": "What is the capital of Poland?",
            "gt_answer": "Warsaw.",
            "response": "It is Warsaw.",
            "retrieved_context": [{"doc_id": "p", "text": POLAND}, {"doc_id": "r", "text": RIVER}],
            "response_claims": [["Warsaw", "capital of", "Poland"]],
            "metrics": {"precision": 1.0},
        }
    ],
    # deepeval.dataset.EvaluationDataset.save_as("json")
    "deepeval": [
        {
            "input": "What is the capital of Poland?",
            "actual_output": "It is Warsaw. It is on the Vistula.",
            "expected_output": "Warsaw",
            "retrieval_context": [POLAND, RIVER],
            "context": [POLAND],
            "source_file": "poland.md",
        }
    ],
    # what trulens.apps.virtual.TruVirtual.add_dataframe reads
    "trulens": [
        {"query": "What is the capital of Poland?", "response": "It is Warsaw.", "contexts": [POLAND, RIVER]},
        {"query": "And its river?", "response": "The Vistula [1].", "contexts": [RIVER]},
    ],
    # trulens.core.schema.record.Record.model_dump: the main call returns a string, a retriever a list
    "trulens-records": [
        {
            "record_id": "record_hash_1",
            "app_id": "app_hash_1",
            "tags": "-",
            "meta": None,
            "main_input": "What is the capital of Poland?",
            "main_output": "It is Warsaw.",
            "main_error": None,
            "calls": [
                {"call_id": "1", "stack": [], "args": ["?"], "rets": [POLAND, {"page_content": RIVER}, POLAND]},
                {"call_id": "2", "stack": [], "args": ["?"], "rets": "It is Warsaw.", "error": None},
            ],
        }
    ],
    # flashrag.dataset.Item.to_dict
    "flashrag": [
        {
            "id": "test_0",
            "question": "what is the capital of poland",
            "golden_answers": ["Warsaw", "Warszawa"],
            "output": {
                "retrieval_result": [{"id": "7", "contents": f'"Warsaw"\n{POLAND}'}, {"id": "8", "contents": RIVER}],
                "pred": "Warsaw",
                "prompt": "Answer the question.",
                "metric_score": {"em": 1.0},
            },
            "metadata": {"source": "ours"},
        }
    ],
    # expertqa.data_utils.example_utils.Example
    "expertqa": [
        {
            "question": "What is the capital of Poland?",
            "annotator_id": "a1",
            "answers": {
                "gpt4": {
                    "answer_string": "It is Warsaw [1]. Lovely.",
                    "attribution": ["https://example.org/w"],
                    "claims": [
                        {
                            "claim_string": "It is Warsaw [1].",
                            "evidence": [f"[1] https://example.org/w\n\n{POLAND}", "https://example.org/x"],
                            "support": "Complete",
                            "reason_missing_support": None,
                            "informativeness": "Very relevant",
                            "worthiness": "Yes",
                        },
                        {"claim_string": "Lovely.", "evidence": [], "support": "Missing", "worthiness": "No"},
                    ],
                    "usefulness": "Useful",
                },
            },
            "metadata": {"question_type": "fact", "field": "geography", "specific_field": None},
        }
    ],
    # ParticleMedia/RAGTruth, dataset/response.jsonl
    "ragtruth": [
        {
            "id": "7",
            "source_id": "s1",
            "model": "gpt-4-0613",
            "temperature": 0.7,
            "labels": [
                {
                    "start": 25,
                    "end": 40,
                    "text": "three million p",
                    "meta": "HIGH INTRO OF NEW INFO",
                    "label_type": "Evident Baseless Info",
                    "due_to_null": False,
                    "implicit_true": False,
                }
            ],
            "split": "test",
            "quality": "good",
            "response": "It is Warsaw. It now has three million people. It is a capital.",
        },
        {
            "id": "8",
            "source_id": "s2",
            "model": "llama-2-7b-chat",
            "temperature": 0.7,
            "labels": [],
            "split": "test",
            "quality": "truncated",
            "response": "The Vistula",
        },
    ],
    "msmarco-v2.1-corpus": [
        {
            "docid": "msmarco_v2.1_doc_00_0#0_1",
            "url": "https://example.org/w",
            "title": "Warsaw",
            "headings": "Warsaw\nHistory\nToday\n",
            "segment": POLAND,
            "start_char": 0,
            "end_char": len(POLAND),
        }
    ],
    "beir-corpus": [{"_id": "1", "title": "Warsaw", "text": POLAND, "metadata": {}}],
}
TABLES = {
    "aggrefact": "dataset,doc,claim,label,contamination_identifier\r\n"
    f'WiCE,{POLAND},Warsaw is a capital.,1,abc\r\nWiCE,"{RIVER}\n\nAnd so on.",It flows south.,0,def\r\n',
    # open_rag_eval.connectors: the answer stands in the first row of a run
    "open-rag-eval": "query_id,query,query_run,passage_id,passage,generated_answer\r\n"
    f'q1,capital of poland?,1,[1],{POLAND},"It is Warsaw [1]. It is on the Vistula [2, 3]."\r\n'
    f"q1,capital of poland?,1,[2],{RIVER},\r\n"
    f"q1,capital of poland?,2,[1],{POLAND},Warsaw [1].\r\n"
    "q2,nothing found?,1,,,No idea.\r\n",
    "dpr-corpus": f'id\ttext\ttitle\n1\t"{POLAND} ""So, it is,"" he said."\tWarsaw\n2\t{RIVER}\tVistula\n',
}
