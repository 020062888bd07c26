# Every target beside its plain command: CONTRIBUTING.md. `make` alone lists them.
PYTHON ?=
NAME ?=
PORT ?= 8000
BIN := .venv/bin

# As root (a container, a CI machine) JupyterLab asks to be told that this is meant.
LAB_FLAGS := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)

.DEFAULT_GOAL := help
.PHONY: help environment model book chapter serve lab test grade measure numbers tidy lock vendor clean

help:
	@echo "make book                    build the site into _build/html"
	@echo "make test                    install what the tests need and run them all"
	@echo "make chapter NAME=06-prefill build one chapter alone"
	@echo "make serve                   show the built site on http://localhost:$(PORT)"
	@echo "make lab                     open the chapters in JupyterLab"
	@echo "make grade                   grade a sample class; your own: exercises/README.md"
	@echo "make measure                 time the model on this machine and record it"
	@echo "make numbers                 rewrite numbers.json from a clean build"
	@echo "make tidy                    format the code and normalise the notebooks"
	@echo "make lock, make vendor       renew requirements.lock, the third-party files"
	@echo "make environment, make model make .venv, fetch the model: the others do it by themselves"
	@echo "make clean                   remove everything that was built, but not .venv and the model"

environment:
	@PYTHON="$(PYTHON)" sh tools/environment.sh

model: environment
	@$(BIN)/python -m inferlab.runtime.fetch

book: model
	@$(BIN)/python tools/build.py

chapter: model
	@$(BIN)/python tools/build.py --chapter "$(NAME)"

serve:
	@test -e _build/html/index.html || { echo "There is no site yet: run make book."; exit 1; }
	@echo "http://localhost:$(PORT)  (stop with Ctrl-C)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT) || \
		{ echo "Not served. If port $(PORT) is taken, choose another: make serve PORT=8001" >&2; exit 1; }

# The folder of .venv goes first on PATH: nbgrader calls its helpers by name.
lab: model
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/jupyter lab $(LAB_FLAGS) --LabApp.default_url=/lab/tree/book

# One BLAS thread: on a busy machine several mostly wait for each other.
test: model
	@sh tools/system_packages.sh
	@OPENBLAS_NUM_THREADS=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest --nbval-lax --nbval-current-env book tests

grade: environment
	@$(BIN)/python -m inferlab.grading.sample _build/grading/class
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/inferlab grade _build/grading/class --course _build/grading/course

measure: model
	@$(BIN)/inferlab measure --record

numbers: model
	@$(BIN)/python tools/build.py --clean --numbers

tidy: environment
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix
	@$(BIN)/python tools/notebooks.py

lock: environment
	@$(BIN)/python tools/lock.py

vendor: environment
	@$(BIN)/python tools/vendor.py

clean:
	rm -rf _build .pytest_cache .ruff_cache .hypothesis
