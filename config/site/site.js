// Loads the index of the search when somebody is about to search: it is larger than all the rest of a page.
{
  const script = document.getElementById('tsd-search-script');
  const input = document.getElementById('tsd-search-input');
  const load = () => {
    if (script.hasAttribute('src')) return;
    script.src = script.dataset.src;
  };
  // What was typed before it came is searched for then. TypeDoc unpacks the index without telling when it has it.
  script.addEventListener('load', () => {
    const results = document.getElementById('tsd-search-results');
    const status = document.getElementById('tsd-search-status');
    const timer = setInterval(() => {
      if (input.value.trim() === '') return;
      if (results.childElementCount > 0 || status.textContent !== '') clearInterval(timer);
      else input.dispatchEvent(new Event('input'));
    }, 300);
  });
  for (const event of ['pointerenter', 'focus', 'click'])
    document.getElementById('tsd-search-trigger').addEventListener(event, load);
  input.addEventListener('focus', load);
}

// Code and tables that are wider than their place can be scrolled by keyboard.
{
  const mark = () => {
    for (const box of document.querySelectorAll('pre > code, .tsd-typography table')) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
    }
  };
  mark();
  addEventListener('resize', mark);
  // What was folded had no width.
  document.addEventListener('toggle', mark, true);
}
