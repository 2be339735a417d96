package wire

import (
	"testing"
	"testing/synctest"
)

func TestClasses(t *testing.T) {
	last := 0
	for _, n := range []int{1, 4096, 4097, 5120, 5121, 8192, 8193, 65536, 1 << 20, 1<<20 + 1, 1<<20 + 200, 5 << 20, 104857600, 1<<31 - 1} {
		class := classOf(n)
		size := classSize(class)
		if size < n || class < last || class >= numClasses {
			t.Errorf("classOf(%d) = %d of %d bytes", n, class, size)
		}
		if n > 4096 && size > n+n/4 {
			t.Errorf("class of %d wastes %d", n, size-n)
		}
		if class > 0 && classSize(class-1) >= n {
			t.Errorf("class %d of %d bytes holds %d too", class-1, classSize(class-1), n)
		}
		last = class
	}
}

func TestPoolKeepsAndTrims(t *testing.T) {
	p, bud := &bufferPool{maxIdle: 3 << 20}, &budget{max: 1 << 30}
	var held []*buffer
	for range 5 {
		bud.tryAcquire(1 << 20)
		b := p.get(1 << 20)
		b.budget, b.charged = bud, 1<<20
		held = append(held, b)
	}
	for _, b := range held {
		b.release()
	}
	if bud.used != 0 {
		t.Fatalf("%d bytes of budget left", bud.used)
	}
	if p.idle != 3<<20 {
		t.Fatalf("%d bytes idle, want the maximum", p.idle)
	}
	p.trim() // starts the count
	p.get(1 << 20).release()
	p.trim()
	if p.idle != 1<<20 {
		t.Fatalf("%d bytes idle after a time in which one buffer was used", p.idle)
	}
	p.trim()
	if p.idle != 0 {
		t.Fatalf("%d bytes idle after a time in which none was used", p.idle)
	}
	defer func() {
		if recover() == nil {
			t.Error("second release did not panic")
		}
	}()
	held[0].release()
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{max: 100}
		type grant struct {
			id       int
			over, ok bool
		}
		got := make(chan grant, 8)
		cancel := make(chan struct{})
		ask := func(id int, n int64, frame int) {
			go func() {
				over, ok := b.acquire(n, frame, cancel)
				got <- grant{id, over, ok}
			}()
			synctest.Wait()
		}
		want := func(all ...grant) {
			t.Helper()
			synctest.Wait()
			for _, g := range all {
				select {
				case x := <-got:
					if x != g {
						t.Fatalf("got %v, want %v", x, g)
					}
				default:
					t.Fatalf("nothing, want %v", g)
				}
			}
			if len(got) > 0 {
				t.Fatalf("also %v", <-got)
			}
		}
		ask(1, 90, 90)
		want(grant{1, false, true})
		ask(2, 20, 50) // does not fit: the one that overdraws
		want(grant{2, true, true})
		b.force(30)
		ask(3, 100, 100)
		ask(4, 20, 40)
		ask(5, 5, 60)
		if !b.pressed() || b.tryAcquire(1) {
			t.Fatal("somebody got past the line")
		}
		want()
		b.release(50) // of the one that overdrew, in full
		b.endOver()
		want(grant{4, true, true}) // the smallest, not the first
		b.release(90)              // 20 are used: the first in line does not fit, and holds up what would
		want()
		b.release(20)
		want(grant{3, false, true})
		b.endOver()
		want(grant{5, true, true})
		ask(6, 10, 10)
		close(cancel)
		want(grant{6, false, false})
		b.release(100)
		b.release(5)
		b.endOver()
		if b.used != 0 || b.over || b.pressed() {
			t.Fatalf("%d used, over %v", b.used, b.over)
		}
		cancel = nil
		ask(7, 1000, 1000) // more than there is, alone
		want(grant{7, false, true})
	})
}
