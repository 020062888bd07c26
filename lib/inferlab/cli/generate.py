"""`inferlab generate`: continue a prompt with the real model, in plain NumPy (chapter 1)."""

import argparse
import json
import sys

from inferlab.quantities import format_duration, format_rate


def add_parser(subparsers):
    """Add the `generate` command."""
    parser = subparsers.add_parser(
        "generate",
        help="continue a prompt with a small real model",
        description="Continue a prompt with SmolLM2-135M-Instruct, or another GGUF model of the "
        "Llama family, in plain NumPy. The prompt is taken as it is: control tokens written in it, "
        "such as <|im_end|>, are recognised. With --chat it is one message in the model's own "
        "template, and control tokens in it are plain text. A prompt without tokens or longer than "
        "the model's context is refused; characters without a token are left out.",
    )
    parser.add_argument("prompt", help="the text to continue")
    parser.add_argument("--chat", action="store_true", help="answer the prompt as a chat message")
    parser.add_argument(
        "--max-tokens", type=int, default=128, metavar="N",
        help="stop after N new tokens (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T",
        help="0 takes the likeliest token each time (default), 1 samples as the model predicts",
    )  # fmt: skip
    parser.add_argument(
        "--top-p", type=float, default=1.0, metavar="P",
        help="sample from the likeliest tokens that together reach probability P (default: all)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="make sampling repeatable")
    parser.add_argument("--model", metavar="FILE", help="a GGUF file (default: the fetched model)")
    parser.add_argument(
        "--json", action="store_true",
        help="print one JSON object: prompt_ids, ids, text (of ids, a stop token included), "
        "stopped_by (eos, length, context), top (ten [id, logit] after the prompt), mean_nll "
        "(nats a token over the prompt), timing (prefill_s, decode_s)",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from inferlab.runtime import load
    from inferlab.runtime.generation import generate, losses, top

    model = load(args.model)
    tokenizer = model.tokenizer
    prompt_ids = tokenizer.chat(args.prompt) if args.chat else tokenizer.encode(args.prompt)
    text = tokenizer.text_stream()

    def show(_, token):
        # The stop token is the model's way to hang up, not part of what it says.
        if not args.json and token not in tokenizer.stop:
            print(text.push(token), end="", flush=True)

    (answer,) = generate(
        model.decoder,
        [prompt_ids],
        max_tokens=args.max_tokens,
        temperature=args.temperature,
        top_p=args.top_p,
        seed=args.seed,
        stop=tokenizer.stop,
        on_token=show,
    )
    if not args.json:
        print(text.finish())
        print(_summary(answer), file=sys.stderr)
        return 0
    losses_of_prompt = losses(model.decoder, prompt_ids)
    report = {
        "prompt_ids": answer.prompt_ids,
        "ids": answer.ids,
        "text": tokenizer.decode(answer.ids),
        "stopped_by": answer.stopped_by,
        "top": [list(pair) for pair in top(answer.prompt_logits)],
        "mean_nll": float(losses_of_prompt.mean()) if losses_of_prompt.size else None,
        "timing": {"prefill_s": answer.prefill_s, "decode_s": answer.decode_s},
    }
    print(json.dumps(report))
    return 0


def _summary(answer):
    prompt, new = len(answer.prompt_ids), len(answer.ids)
    line = f"{prompt} prompt tokens in {format_duration(answer.prefill_s)}"
    if answer.decode_s:
        rate = (new - 1) / answer.decode_s
        line += f", then {new - 1} decode steps in {format_duration(answer.decode_s)} ({format_rate(rate)})"
    return f"{line}; stopped by {answer.stopped_by}"
