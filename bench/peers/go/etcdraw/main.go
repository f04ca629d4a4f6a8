// No lock at all: a put and a delete, each awaited. What etcd's store allows.
package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"holdfast.bench/peers/scenarios"
)

type client struct{ etcd *clientv3.Client }

func (c client) Lock(_ int, name string) (func() error, error) {
	_, err := c.etcd.Put(context.Background(), "/"+name, "")
	return func() error {
		_, err := c.etcd.Delete(context.Background(), "/"+name)
		return err
	}, err
}

func open(port string, _ int) (scenarios.Client, error) {
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"127.0.0.1:" + port}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	return client{etcd}, err
}

func main() { scenarios.Run("etcd-put-delete", "go.etcd.io/etcd/client/v3", open) }
