# Bare `make` lists the targets.
GO       ?= go
FUZZTIME ?= 50000x
RUN      ?= .
COUNT    ?= 1
# The rooms with goroutines, locks or files; `make race` runs these and the root package.
EDGE     := disk commitlog partition quorum wire broker metrics console host lab
RACE     := $(foreach r,$(EDGE),$(patsubst %/,./%/...,$(wildcard internal/$(r)/)))

.DEFAULT_GOAL := help
.PHONY: help build test race lint fuzz bench gobench compat diff

help:     ## this list
	@sed -n 's/^\([a-z]*\): *## */  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

build:    ## bin/weir
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/weir ./cmd/weir

test:     ## every test of the module
	$(GO) test ./...

race:     ## the rooms with goroutines under the race detector
	$(GO) test -race $(RACE)

lint:     ## gofmt and vet, compat included
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags compat ./compat ./compat/diff
	$(GO) vet -tags nightly .

fuzz:     ## every fuzz target, FUZZTIME=50000x runs each (a count: a deadline trips golang/go#75804)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "fuzz $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 200x $$pkg; done; done

bench:    ## Weir beside Kafka 4.4, as docs/performance.md has it: ROUNDS=3 SCALE=0.5 JAVA='case...' GO='case...' (or none)
	@bench/table.sh

gobench:  ## benchmarks beside the code: RUN=regexp COUNT=1
	$(GO) test -run '^$$' -bench '$(RUN)' -benchmem -count $(COUNT) ./...

compat:   ## foreign clients, tools and raw bytes against Weir: RUN=regexp (see compat/doc.go)
	$(GO) test -tags compat -count 1 -timeout 30m -parallel 6 -v -run '$(RUN)' ./compat

.PHONY: nightly
nightly:  ## what takes hours: 1,000 kill -9 under load, ten million commits, a soak, strangers, fuzzing
	WEIR_KILLS=1000 $(GO) test -tags compat -count 1 -timeout 3h -v -run '^TestKills$$' ./compat
	$(GO) test -tags nightly -count 1 -timeout 1h -v -run '^TestTenMillionCommits$$' .
	WEIR_SOAK=30m $(GO) test -tags compat -count 1 -timeout 1h -v -run '^TestSoak$$' ./compat
	WEIR_NIGHTLY=1 $(GO) test -tags compat -count 1 -timeout 1h -v -run '^Test(IdleCrowd|BusyCrowd|SlowReaders|LargestFrames|Bombs|MillionRecords)$$' ./compat
	KGO_TEST_RECORDS=500000 $(GO) test -tags compat -count 1 -timeout 1h -v -run '^TestFranzOwn$$' ./compat
	$(MAKE) fuzz FUZZTIME=1000000x
	WEIR_SEEDS=20000 $(GO) test -count 1 -timeout 3h -run '^Test(CleanModel|CleanModelCrash|CrashEverywhere)$$' ./internal/commitlog ./internal/partition

diff:     ## the same raw requests to Kafka 4.4 and to Weir, compared: RUN=Diff/groups (see compat/diff/doc.go)
	$(GO) test -tags compat -count 1 -timeout 10m -run '$(RUN)' ./compat/diff
