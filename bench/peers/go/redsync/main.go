// Redsync's Mutex on one Redis.
package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"holdfast.bench/peers/scenarios"
)

type client struct{ sync *redsync.Redsync }

func (c client) Lock(_ int, name string) (func() error, error) {
	mutex := c.sync.NewMutex(name, redsync.WithExpiry(30*time.Second), redsync.WithTries(math.MaxInt32))
	if err := mutex.LockContext(context.Background()); err != nil {
		return nil, err
	}
	return func() error {
		ok, err := mutex.Unlock()
		if err == nil && !ok {
			return errors.New("not ours any more")
		}
		return err
	}, nil
}

func open(port string, threads int) (scenarios.Client, error) {
	pool := goredis.NewPool(redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, PoolSize: threads}))
	return client{redsync.New(pool)}, nil
}

func main() { scenarios.Run("redsync", "github.com/go-redsync/redsync/v4", open) }
