//go:build !linux

package main

import (
	"context"
	"errors"
)

const floorArg = "floor-server"

func floor(context.Context, float64) error { return errors.New("the floor is measured on Linux alone") }

func floorServe([]string) error { return errors.New("the floor is measured on Linux alone") }
