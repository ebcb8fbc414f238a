package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sublet/daemon/internal/picture"
	"sublet/wire"
)

// MaxImages bounds the images of one session in bytes. The pixels of the oldest events are removed first; names and sizes stay.
const MaxImages = 64 << 20

// older selects the images of session ?1 that have their pixels, but the newest of at most ?2 bytes.
const older = `SELECT seq, n FROM (SELECT seq, n, sum(size) OVER (ORDER BY seq DESC, n DESC) AS newer FROM images WHERE session_id = ?1 AND data IS NOT NULL)
	WHERE newer > ?2`

// KeepImages stores the images of event seq. The session must exist. Of its images only the newest MaxImages keep their data.
func (s *Store) KeepImages(ctx context.Context, id wire.SessionID, seq int64, images []*picture.Image) error {
	return s.tx(ctx, fmt.Sprintf("keep images of event %d of session %s", seq, id), func(tx *sql.Tx) error {
		for n, i := range images {
			if _, err := tx.ExecContext(ctx,
				"INSERT INTO images (session_id, seq, n, name, mime, width, height, size, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
				id, seq, n, i.Name, i.MIME, i.Width, i.Height, i.Size, i.Data); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE images SET data = NULL WHERE session_id = ?1 AND data IS NOT NULL AND (seq, n) IN (`+older+`)`, id, MaxImages)
		return err
	})
}

// Images returns the images of a session by the number of their event, those of one event in order. Only the newest, of at most so many
// bytes, have Data, unless their pixels were removed.
func (s *Store) Images(ctx context.Context, id wire.SessionID, most int) (map[int64][]*picture.Image, error) {
	images := map[int64][]*picture.Image{}
	err := each(ctx, s.db, func(scan func(...any) error) error {
		var seq int64
		i := &picture.Image{}
		err := scan(&seq, &i.Name, &i.MIME, &i.Width, &i.Height, &i.Size, &i.Data)
		images[seq] = append(images[seq], i)
		return err
	}, `SELECT seq, name, mime, width, height, size, CASE WHEN (seq, n) NOT IN (`+older+`) THEN data END
		FROM images WHERE session_id = ?1 ORDER BY seq, n`, id, most)
	return images, s.failed("read images of session "+string(id), err)
}

// ForgetImages removes the pixels of the images of an event.
func (s *Store) ForgetImages(ctx context.Context, id wire.SessionID, seq int64) error {
	_, err := s.exec(ctx, "forget images", "UPDATE images SET data = NULL WHERE session_id = ? AND seq = ?", id, seq)
	return err
}

// TurnImages stores the images of one turn for package agent. A failure is only logged: later turns then lack the picture.
type TurnImages struct {
	Store   *Store
	Session wire.SessionID
	Turn    wire.TurnID
}

// turnImagesBound bounds one write.
const turnImagesBound = 10 * time.Second

func (k TurnImages) Keep(seq int64, images []*picture.Image) {
	k.do("keep", seq, func(ctx context.Context) error { return k.Store.KeepImages(ctx, k.Session, seq, images) })
}

func (k TurnImages) Forget(seq int64) {
	k.do("forget", seq, func(ctx context.Context) error { return k.Store.ForgetImages(ctx, k.Session, seq) })
}

func (k TurnImages) do(what string, seq int64, write func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), turnImagesBound)
	defer cancel()
	if err := write(ctx); err != nil {
		k.Store.log.Error("images of a turn", "do", what, "turn", k.Turn, "event", seq, "err", err)
	}
}
