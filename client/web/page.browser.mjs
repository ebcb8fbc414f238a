// The page in a real Chromium (make test-browser): conversations, tool cards, approvals, and that nothing from outside
// becomes markup. The environment names the server and the folder that has playwright-core.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useOperator } from './operator.js';

const { OPERATOR_ADDR: addr, OPERATOR_TOKEN: token, OPERATOR_GATE: gate, OPERATOR_PROJECT: project, SUBLET_BROWSER: folder } = process.env;
const { chromium } = createRequire(join(folder, 'package.json'))('playwright-core');
const profile = mkdtempSync(join(tmpdir(), 'sublet-page-'));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1100, height: 760 },
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
context.setDefaultTimeout(30000);
const shot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`) });

/** see waits for a text in an element. */
const see = (page, selector, text) => page.locator(selector, { hasText: text }).last().waitFor();

async function ask(page, text) {
  await page.locator('#content').fill(text);
  await page.locator('#send').click();
}

try {
  const page = context.pages()[0] ?? (await context.newPage());
  const problems = [];
  page.on('console', (m) => m.type() === 'error' && problems.push(m.text()));
  page.on('pageerror', (e) => problems.push(String(e)));
  page.on('dialog', (d) => (d.type() === 'confirm' ? d.accept() : (problems.push(`a dialog: ${d.message()}`), d.dismiss())));

  // Without the token the page asks for it, and shows nothing.
  await page.goto(`http://${addr}/`);
  await page.locator('#login').waitFor();
  assert.equal(await page.locator('.session').count(), 0);
  await shot(page, '1-login');
  await page.locator('#token').fill('wrong');
  await page.locator('#login button').click();
  await see(page, '#problem', 'not the server');
  await page.locator('#token').fill(token);
  await page.locator('#login button').click();
  await see(page, '#link', 'connected');

  // The address that the server prints has the token behind #; it does not stay there.
  await page.goto('about:blank');
  await page.goto(`http://${addr}/#token=${token}`);
  await see(page, '#link', 'connected');
  assert.equal(new URL(page.url()).hash, '');

  // A conversation with a tool card; markup stays text (P8).
  await ask(page, 'look around <script>alert(2)</script>');
  await see(page, '.said', 'Found **it**: <img src=x onerror=alert(1)>');
  await see(page, '.asked', '<script>alert(2)</script>');
  await see(page, 'details.tool .mark', 'done');
  await page.locator('details.tool summary').first().click();
  await see(page, 'details.tool pre', 'found');
  assert.equal(await page.locator('#turns img, #turns script').count(), 0);
  await see(page, '.session.now', 'look around');
  await shot(page, '2-conversation');

  // Markup in every place that shows what others wrote: names of tools and files, output, code, links, titles, errors (P8).
  await page.locator('#new').click();
  await page.locator('.asked').first().waitFor({ state: 'detached' });
  await ask(page, 'markup <img src=x onerror=alert(9)>');
  await see(page, '.said', '<svg onload=alert(8)>');
  assert.equal(await page.locator('details.tool').count(), 3);
  for (const summary of await page.locator('details.tool summary').all()) await summary.click();
  await see(page, 'details.tool pre', '<script>alert(5)</script>');
  await see(page, 'details.tool strong', '<img src=x onerror=alert(3)>');
  await see(page, '.session.now', 'markup <img src=x');
  await ask(page, 'fail <b>now</b>');
  await see(page, '#problem', 'scripted auth');
  assert.equal(await page.locator('main img, main script, main svg, main b, main a, aside img').count(), 0);
  await shot(page, '2b-markup');

  // A question: no comes first, yes only after a moment; the answer counts (H1, T3n).
  await ask(page, 'remove the old ones');
  await page.locator('.question').waitFor();
  await see(page, '.question pre', 'rm -r old');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'No');
  await shot(page, '3-question');
  await page.keyboard.press('Enter'); // the keyboard alone: what has the focus is no
  await see(page, 'details.tool .mark', 'failed');
  await page.locator('.question').waitFor({ state: 'detached' });
  assert.ok(existsSync(join(project, 'old')), 'it ran although it was denied');
  await page.locator('#stop').waitFor({ state: 'hidden' });
  await ask(page, 'remove them now');
  await page.locator('.question .allow:enabled').click();
  await page.locator('.question').waitFor({ state: 'detached' });
  await page.locator('#stop').waitFor({ state: 'hidden' });
  assert.ok(!existsSync(join(project, 'old')), 'it did not run although it was allowed');
  await shot(page, '4-allowed');

  // Stop ends the turn.
  await ask(page, 'wait for ever');
  await see(page, '.said', 'so');
  await page.locator('#stop').click();
  await page.locator('#stop').waitFor({ state: 'hidden' });
  await see(page, '.failed', 'ended: error');

  // Another conversation, streaming; then back to the first from the list.
  await page.locator('#new').click();
  await page.locator('.asked').first().waitFor({ state: 'detached' });
  await ask(page, 'wait at the gate');
  await see(page, '.said', 'before');
  await shot(page, '5-streaming');
  writeFileSync(gate, '');
  await see(page, '.said', 'through');
  await page.locator('.session', { hasText: 'look around' }).locator('button').first().click();
  await see(page, '.said', 'Found **it**');
  const before = await page.locator('.session').count();
  await page.locator('.session', { hasText: 'wait at the gate' }).locator('.remove').click();
  await page.waitForFunction((n) => document.querySelectorAll('.session').length === n - 1, before);

  // The keyboard alone asks, too, and Shift+Enter begins a line.
  await page.locator('#content').focus();
  await page.keyboard.type('look');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('twice');
  await page.keyboard.press('Enter');
  await see(page, '.asked', 'look\ntwice');
  await page.locator('#stop').waitFor({ state: 'hidden' });

  // Small and dark.
  await page.setViewportSize({ width: 420, height: 700 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, '6-small-dark');

  // A question on a small screen can be read and answered.
  await ask(page, 'remove what is left');
  await page.locator('.question').waitFor();
  await shot(page, '7-small-question');
  const box = await page.locator('.question .deny').boundingBox();
  assert.ok(box && box.x >= 0 && box.x + box.width <= 420 && box.y + box.height <= 700, `the answer is outside: ${JSON.stringify(box)}`);
  await page.locator('.question .deny').click();
  await page.locator('#stop').waitFor({ state: 'hidden' });

  // A connection that is lost is shown, and comes back by itself.
  const other = await context.newPage();
  let socket;
  await other.routeWebSocket(/.*/, (ws) => {
    socket = ws;
    ws.connectToServer();
  });
  await other.goto(`http://${addr}/#token=${token}`);
  await see(other, '#link', 'connected');
  await socket.close();
  await see(other, '#link', 'offline, trying again');
  await other.locator('#send:disabled').waitFor();
  await shot(other, '8-offline');
  await see(other, '#link', 'connected');
  await other.locator('#send:enabled').waitFor();
  await other.close();

  // A page of somebody else's reaches nothing: not by WebSocket, not by fetch (T5e).
  const foreign = await context.newPage();
  await foreign.route('http://evil.example/', (route) => route.fulfill({ contentType: 'text/html', body: '<title>evil</title>' }));
  await foreign.goto('http://evil.example/');
  const reached = await foreign.evaluate(async ([addr, token]) => {
    const socket = await new Promise((resolve) => {
      const s = new WebSocket(`ws://${addr}/`);
      s.onopen = () => resolve('open');
      s.onerror = () => resolve('refused');
    });
    const body = JSON.stringify({ type: 'dispatch', id: '1', agentID: 'architect', sessionID: 'evil', content: 'x', metadata: { token } }) + '\n';
    const posted = await fetch(`http://${addr}/`, { method: 'POST', mode: 'no-cors', body }).then((r) => r.type, () => 'refused');
    return [socket, posted];
  }, [addr, token]);
  assert.equal(reached[0], 'refused');
  await foreign.close();
  const operator = useOperator({ token });
  await operator.connect(addr);
  assert.ok(!(await operator.listSessions()).some((s) => s.sessionID === 'evil'), 'a foreign page began a turn');
  await operator.disconnect();

  assert.deepEqual(problems, [], 'errors on the console');
  console.log(`the page is well; screenshots in ${folder}`);
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
