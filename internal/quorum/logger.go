package quorum

import (
	"fmt"
	"log/slog"
)

// raftLogger turns the library's chatter into debug lines. Its panics stay
// panics: they mean that an invariant is broken.
type raftLogger struct{ log *slog.Logger }

func (l raftLogger) Debug(v ...any)              {}
func (l raftLogger) Debugf(f string, v ...any)   {}
func (l raftLogger) Info(v ...any)               { l.log.Debug(fmt.Sprint(v...)) }
func (l raftLogger) Infof(f string, v ...any)    { l.log.Debug(fmt.Sprintf(f, v...)) }
func (l raftLogger) Warning(v ...any)            { l.log.Warn(fmt.Sprint(v...)) }
func (l raftLogger) Warningf(f string, v ...any) { l.log.Warn(fmt.Sprintf(f, v...)) }
func (l raftLogger) Error(v ...any)              { l.log.Error(fmt.Sprint(v...)) }
func (l raftLogger) Errorf(f string, v ...any)   { l.log.Error(fmt.Sprintf(f, v...)) }
func (l raftLogger) Fatal(v ...any)              { panic("BUG: raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(f string, v ...any)   { panic("BUG: raft: " + fmt.Sprintf(f, v...)) }
func (l raftLogger) Panic(v ...any)              { panic("BUG: raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Panicf(f string, v ...any)   { panic("BUG: raft: " + fmt.Sprintf(f, v...)) }
