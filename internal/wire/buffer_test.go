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
	p := &bufferPool{budget: &budget{max: 1 << 30}, maxIdle: 3 << 20}
	var held []*buffer
	for range 5 {
		p.budget.tryAcquire(1 << 20)
		held = append(held, p.get(1<<20, 1<<20))
	}
	for _, b := range held {
		b.release()
	}
	if p.budget.used != 0 {
		t.Fatalf("%d bytes of budget left", p.budget.used)
	}
	if p.idle != 3<<20 {
		t.Fatalf("%d bytes idle, want the maximum", p.idle)
	}
	p.trim() // starts the count
	p.get(1<<20, 0).release()
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
		order := make(chan int, 8)
		cancel := make(chan struct{})
		b.acquire(90, nil)
		wait := func(id int, n int64, cancel chan struct{}) {
			go func() {
				if _, ok := b.acquire(n, cancel); ok {
					order <- id
				} else {
					order <- -id
				}
			}()
			synctest.Wait()
		}
		wait(1, 100, cancel)
		wait(2, 10, nil) // would fit, but waits its turn
		if b.tryAcquire(1) || len(order) != 0 {
			t.Fatal("somebody got past the line")
		}
		close(cancel)
		synctest.Wait()
		if a, c := <-order, <-order; a+c != 1 {
			t.Fatalf("got %d and %d, want waiter 1 cancelled and waiter 2 served", a, c)
		}
		b.release(100)
		wait(3, 100, nil)
		if got := <-order; got != 3 || b.used != 100 {
			t.Fatalf("waiter %d, %d used", got, b.used)
		}
		b.release(100)
		if b.used != 0 {
			t.Fatalf("%d used", b.used)
		}
	})
}
