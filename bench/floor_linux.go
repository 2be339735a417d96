package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// floorArg is the first argument of the process that is the floor; the size of a
// frame and a folder follow.
const (
	floorArg    = "floor-server"
	floorAnswer = 64
)

// floor prints what no broker can go below on this machine: the CPU of a process
// that only reads frames from a socket, writes each to one of six files in turn and
// answers 64 bytes, with five frames under way. It parses, checks and indexes
// nothing, and blocks in the system calls themselves.
func floor(ctx context.Context, scale float64) error {
	fmt.Println("| frame | floor, CPU-s per GB |")
	fmt.Println("|---|---|")
	for _, frame := range []int{1 << 10, 16 << 10, 64 << 10, 1 << 20} {
		var runs []float64
		for range 3 {
			c, err := floorRun(ctx, frame, min(int(scale*1e9)/frame, 60_000))
			if err != nil {
				return err
			}
			runs = append(runs, c)
		}
		fmt.Printf("| %d KiB | %.2f |\n", frame>>10, median(runs))
	}
	return nil
}

func floorRun(ctx context.Context, frame, frames int) (perGB float64, err error) {
	dir, err := os.MkdirTemp("", "floor")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, os.Args[0], floorArg, strconv.Itoa(frame), dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the floor did not start: %w", err)
	}
	c, err := net.Dial("tcp", strings.TrimSpace(addr))
	if err != nil {
		return 0, err
	}
	window, acked := make(chan struct{}, 5), make(chan error, 1)
	go func() {
		b := make([]byte, floorAnswer)
		for range frames {
			if _, err := io.ReadFull(c, b); err != nil {
				acked <- err
				return
			}
			<-window
		}
		acked <- nil
	}()
	b := make([]byte, frame)
	for range frames {
		window <- struct{}{}
		if _, err := c.Write(b); err != nil {
			return 0, err
		}
	}
	if err := <-acked; err != nil {
		return 0, err
	}
	c.Close()
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return used.Seconds() / (float64(frame) * float64(frames) / 1e9), nil
}

// floorServe is the other process. It ends with its only connection.
func floorServe(args []string) error {
	if len(args) != 2 {
		return errors.New("want the size of a frame and a folder")
	}
	frame, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	nc, err := l.Accept()
	if err != nil {
		return err
	}
	sock, err := nc.(*net.TCPConn).File() // another descriptor, which blocks
	if err != nil {
		return err
	}
	if err := syscall.SetNonblock(int(sock.Fd()), false); err != nil {
		return err
	}
	var files [6]*os.File
	var sizes [6]int64
	for i := range files {
		if files[i], err = os.Create(filepath.Join(args[1], strconv.Itoa(i))); err != nil {
			return err
		}
	}
	b := make([]byte, frame)
	for n := 0; ; n++ {
		for have := 0; have < frame; {
			got, err := syscall.Read(int(sock.Fd()), b[have:])
			if err != nil || got <= 0 {
				return err
			}
			have += got
		}
		i := n % len(files)
		if _, err := files[i].WriteAt(b, sizes[i]); err != nil {
			return err
		}
		sizes[i] += int64(frame)
		if _, err := syscall.Write(int(sock.Fd()), b[:floorAnswer]); err != nil {
			return err
		}
	}
}
