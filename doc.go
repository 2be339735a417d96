// Package weir runs a Weir broker inside a Go program or test. It speaks Kafka's
// protocol: every Kafka client works against the address that Addr gives.
//
//	s, err := weir.Start(ctx, weir.Options{}) // a free port, a folder that Close removes
//	defer s.Close()
//	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addr()))
//
// It owns the wiring of the rooms under internal/: who knows whom, in which order
// they start and stop. It decides nothing else.
package weir
