// etcd's own concurrency.Mutex. A mutex belongs to a session: a thread has one.
package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"holdfast.bench/peers/scenarios"
)

type client struct{ sessions []*concurrency.Session }

func (c client) Lock(thread int, name string) (func() error, error) {
	mutex := concurrency.NewMutex(c.sessions[thread], "/"+name)
	if err := mutex.Lock(context.Background()); err != nil {
		return nil, err
	}
	return func() error { return mutex.Unlock(context.Background()) }, nil
}

func open(port string, threads int) (scenarios.Client, error) {
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"127.0.0.1:" + port}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	var c client
	for range threads {
		session, err := concurrency.NewSession(etcd, concurrency.WithTTL(30))
		if err != nil {
			return nil, err
		}
		c.sessions = append(c.sessions, session)
	}
	return c, nil
}

func main() { scenarios.Run("etcd-concurrency", "go.etcd.io/etcd/client/v3", open) }
